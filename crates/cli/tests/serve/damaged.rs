//! A member of a pool whose files are damaged: the pool continues without it where its redundancy allows that, never
//! changes the files, and serves the data of the other members.

use std::fs::{self, File};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use crate::pools::{Rig, check, flush, kill, refused, refused_with, write};
use crate::rig::{BLOCK, BLOCKS, Client, end, serve_logged, stamped};

const MIRROR: &str = "mirror(2*optane-memory-16)";
const MEMBER: &str = "optane-memory-16.0";

/// A damage of the two files of a member.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Truncated,
    Emptied,
    WithoutState,
    WithoutImage,
    DamagedState,
    NoText,
}

const ALL: [Damage; 6] = [
    Damage::Truncated,
    Damage::Emptied,
    Damage::WithoutState,
    Damage::WithoutImage,
    Damage::DamagedState,
    Damage::NoText,
];

fn image(rig: &Rig, member: &str) -> PathBuf {
    rig.store().join(format!("{member}.img"))
}

fn cut(image: &PathBuf, bytes: u64) {
    let file = File::options().write(true).open(image).expect("an image");
    file.set_len(bytes).expect("cut");
}

impl Damage {
    fn befall(self, rig: &Rig, member: &str) {
        let image = image(rig, member);
        let state = rig.store().join(format!("{member}.img.state"));
        match self {
            Damage::Truncated => {
                let bytes = fs::metadata(&image).expect("an image").len();
                cut(&image, bytes / 2);
            }
            Damage::Emptied => cut(&image, 0),
            Damage::WithoutState => fs::remove_file(state).expect("removed"),
            Damage::WithoutImage => fs::remove_file(image).expect("removed"),
            Damage::DamagedState => {
                let text = fs::read_to_string(&state).expect("a state");
                fs::write(state, text.replace("clean", "clear")).expect("written");
            }
            Damage::NoText => fs::write(state, [0xff; 100]).expect("written"),
        }
    }
}

/// Returns the length and the last change of a member's data file, and the content of its state.
fn files(rig: &Rig, member: &str) -> (Option<(u64, SystemTime)>, Option<Vec<u8>>) {
    let data = fs::metadata(image(rig, member)).ok();
    let data = data.map(|it| (it.len(), it.modified().expect("a time")));
    let state = fs::read(rig.store().join(format!("{member}.img.state")));
    (data, state.ok())
}

#[test]
fn a_mirror_continues_without_a_member_whose_files_are_damaged() {
    for damage in ALL {
        let rig = Rig::new();
        let (server, mut client) = rig.serve(MIRROR);
        write(&mut client, 1);
        end(server);
        damage.befall(&rig, MEMBER);
        let before = files(&rig, MEMBER);
        let (server, mut client) = rig.serve(MIRROR);
        let said = rig.log();
        for words in [
            "optane-memory-16.0 is damaged: ",
            "It counts as missing",
            "optane-memory-16.0 is missing: mirror continues without it",
            "truncate -s ",
        ] {
            assert!(said.contains(words), "{damage:?}: {words}: {said}");
        }
        check(&mut client, 1);
        write(&mut client, 2);
        kill(server);
        assert_eq!(files(&rig, MEMBER), before, "{damage:?}: changed");
        // The user has accepted the loss of something else than a file that may be restored.
        refused_with(&["--accept-loss"], MIRROR, &rig.store(), "is damaged: ");
        assert_eq!(files(&rig, MEMBER), before, "{damage:?}: changed");
        // Without the whole member, nothing is served: only it has the second generation.
        rig.aside("optane-memory-16.1", false);
        refused(MIRROR, &rig.store(), "is damaged: ");
        rig.aside("optane-memory-16.1", true);
        let (_server, mut client) = rig.serve(MIRROR);
        check(&mut client, 2);
    }
}

/// The advice of the message: an empty file of the drive's size, without a state, is a new member.
#[test]
fn an_empty_file_replaces_a_damaged_member() {
    let rig = Rig::new();
    let (server, mut client) = rig.serve(MIRROR);
    write(&mut client, 1);
    end(server);
    let bytes = fs::metadata(image(&rig, MEMBER)).expect("an image").len();
    Damage::DamagedState.befall(&rig, MEMBER);
    let (server, mut client) = rig.serve(MIRROR);
    let said = rig.log();
    assert!(said.contains(&format!("truncate -s {bytes} ")), "{said}");
    write(&mut client, 2);
    end(server);
    fs::remove_file(image(&rig, MEMBER)).expect("removed");
    fs::remove_file(rig.store().join("optane-memory-16.0.img.state")).expect("removed");
    let empty = File::create(image(&rig, MEMBER)).expect("created");
    empty.set_len(bytes).expect("as large");
    let (server, mut client) = rig.serve(MIRROR);
    let said = rig.log();
    assert!(said.contains("optane-memory-16.0 is blank"), "{said}");
    check(&mut client, 2);
    let start = Instant::now();
    while !rig.log().contains("is in sync with mirror again") {
        assert!(start.elapsed().as_secs() < 60, "{}", rig.log());
        sleep(Duration::from_millis(20));
    }
    end(server);
    rig.aside("optane-memory-16.1", false);
    let (_server, mut client) = rig.serve(MIRROR);
    check(&mut client, 2);
}

#[test]
fn an_array_continues_without_a_damaged_member_unless_it_was_killed() {
    let pool = "raid5(3*optane-memory-16)";
    let rig = Rig::new();
    let (server, mut client) = rig.serve(pool);
    write(&mut client, 1);
    flush(&mut client);
    end(server);
    Damage::Truncated.befall(&rig, MEMBER);
    let (server, mut client) = rig.serve(pool);
    assert!(rig.log().contains("is damaged"), "{}", rig.log());
    check(&mut client, 1);
    write(&mut client, 2);
    kill(server);
    refused(pool, &rig.store(), "cannot be computed with certainty");

    // A stripe has no redundancy.
    let stripe = "stripe(2*optane-memory-16; chunk=4k)";
    let rig = Rig::new();
    let (server, mut client) = rig.serve(stripe);
    write(&mut client, 1);
    end(server);
    Damage::Truncated.befall(&rig, MEMBER);
    refused(stripe, &rig.store(), "optane-memory-16.0 is damaged");
    refused(stripe, &rig.store(), "--accept-loss does not replace");
}

/// A member that another program has upgraded, or that belongs to another drive, is not damaged.
#[test]
fn a_store_of_another_version_is_refused() {
    let rig = Rig::new();
    let (server, mut client) = rig.serve(MIRROR);
    write(&mut client, 1);
    end(server);
    let state = rig.store().join("optane-memory-16.0.img.state");
    let text = fs::read_to_string(&state).expect("a state");
    fs::write(&state, text.replace("store 2", "store 9")).expect("written");
    refused(MIRROR, &rig.store(), "it is of another version");
    refused(
        MIRROR,
        &rig.store(),
        "the version of this program that wrote it",
    );
}

#[test]
fn a_pool_without_pool_state_names_where_its_data_are() {
    let rig = Rig::new();
    let (server, mut client) = rig.serve(MIRROR);
    write(&mut client, 1);
    end(server);
    let state = rig.store().join("pool.state");
    let good = fs::read_to_string(&state).expect("a state");
    let data = "begins with the whole data of the mirror";
    fs::write(&state, good.replace("serial", "cereal")).expect("written");
    refused(MIRROR, &rig.store(), data);
    fs::remove_file(&state).expect("removed");
    refused(MIRROR, &rig.store(), data);
    refused(MIRROR, &rig.store(), "--accept-loss does not replace it");
    // The data are there.
    let bytes = fs::File::open(image(&rig, MEMBER)).expect("an image");
    for block in (0..BLOCKS).step_by(4) {
        use std::os::unix::fs::FileExt;
        let mut data = vec![0; BLOCK];
        let at = block * BLOCK as u64;
        bytes.read_exact_at(&mut data, at).expect("data");
        assert_eq!(data, stamped(block, 1), "block {block}");
    }
    // Without a store of the pool, the folder is just not empty.
    let folder = rig.folder.path().join("other");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("file"), "mine").expect("written");
    refused(MIRROR, &folder, "name an empty folder");
}

/// The member that is left was never in sync, and the message names both.
#[test]
fn a_mirror_whose_only_member_is_blank_names_its_members() {
    let rig = Rig::new();
    let (server, mut client) = rig.serve(MIRROR);
    write(&mut client, 1);
    end(server);
    let bytes = fs::metadata(image(&rig, MEMBER)).expect("an image").len();
    cut(&image(&rig, MEMBER), 0);
    cut(&image(&rig, MEMBER), bytes);
    rig.aside("optane-memory-16.1", false);
    // Without --accept-loss, the member counts as an old copy.
    refused(MIRROR, &rig.store(), "all present members are old copies");
    for words in [
        "optane-memory-16.0 has no readable label",
        "optane-memory-16.1 is missing",
        "of a member that was in sync",
    ] {
        refused_with(&["--accept-loss"], MIRROR, &rig.store(), words);
    }
    rig.aside("optane-memory-16.1", true);
    let server = serve_logged(rig.folder.path(), MIRROR, &[]);
    check(&mut Client::connect(&server), 1);
}
