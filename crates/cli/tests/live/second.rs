//! Second power cuts in guests: a recovery that must not be interrupted passes all first cuts, and fails a second one.

use std::fs;

use crate::programs::Place;

/// The program: a counter is 5, and a log asks for 12. The recovery reads the log.
const PROGRAM: &str = r#"echo 5 > "$DRIVELAB_DIR/count"
sync "$DRIVELAB_DIR/count" "$DRIVELAB_DIR"
echo "$1" > "$DRIVELAB_DIR/new"
sync "$DRIVELAB_DIR/new"
mv "$DRIVELAB_DIR/new" "$DRIVELAB_DIR/log"
sync "$DRIVELAB_DIR"
echo 12 > "$DRIVELAB_ACKS""#;

/// Recovers, and checks the counter. `add 7` is applied twice if power fails before the log is gone; `set 12` is not.
const CHECK: &str = r#"cd "$DRIVELAB_DIR"
if [ -e log ]; then
  read how number < log
  [ $how = set ] || number=$((number + $(cat count)))
  echo $number > count.new
  sync count.new
  mv count.new count
  sync .
  rm log
  sync .
fi
[ ! -s "$DRIVELAB_ACKS" ] || [ "$(cat count)" = 12 ] || { echo "corrupt: the counter is $(cat count)"; exit 11; }"#;

#[test]
fn a_recovery_that_is_not_idempotent_fails_a_second_cut() {
    let Some(place) = Place::new() else { return };
    for (name, text) in [("count.sh", PROGRAM), ("recover.sh", CHECK)] {
        fs::write(place.path().join(name), text).expect("written");
    }
    let check = ["--check", "sh recover.sh", "--limit", "60s"];
    let run = |more: &[&str], log: &str| {
        let program = ["--", "sh", "count.sh", log];
        let first = ["950pro-256", "--images", "60"];
        place.run(&[&first[..], more, &check, &program].concat())
    };
    let second = ["--second-cuts", "3", "--junit", "crash.xml"];
    let (code, said) = run(&second, "set 12");
    assert_eq!(code, 0, "the right recovery: {said}");
    assert!(
        said.contains("second cut during the recovery of 3 images"),
        "{said}"
    );
    let (code, said) = run(&second, "add 7");
    assert_eq!(code, 3, "{said}");
    for part in [
        "FAILED     second cut, after image ",
        ": corrupt: the counter is 19",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let failures = said.matches("FAILED     ").count();
    let of_second = said.matches("FAILED     second cut, after image ").count();
    assert_eq!(failures, of_second, "no first cut fails: {said}");
    let junit = fs::read_to_string(place.path().join("crash.xml")).expect("a file");
    assert!(
        junit.contains("name=\"second cut\">\n      <failure type=\"corrupt\""),
        "{junit}"
    );
    // The printed command repeats it: the recording of the recovery is a log as any other.
    let (_, again) = said
        .split_once("again      drivelab crashtest --from ")
        .expect("a command");
    let words: Vec<&str> = again.split_whitespace().collect();
    assert_eq!(words[1], "--image", "{again}");
    let (code, said) =
        place.run(&[&["--from", words[0], "--image", words[2]], &check[..]].concat());
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("FAILED     corrupt: the counter is 19"),
        "{said}"
    );
}

#[test]
fn second_cuts_without_a_guest_are_refused() {
    let Some(place) = Place::new() else { return };
    let args = [
        "950pro-256",
        "--fs",
        "none",
        "--second-cuts",
        "1",
        "--check",
        "true",
    ];
    let program = [
        "--",
        "sh",
        "-c",
        "qemu-io -f raw -c 'write 0 4k' $DRIVELAB_URI",
    ];
    let (code, said) = place.run(&[&args[..], &program].concat());
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("--second-cuts: there is no guest with --fs none"),
        "{said}"
    );
}
