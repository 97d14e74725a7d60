//! Programs with a planted bug on the disk in memory: each bug is found with its class and its needs, and again by its
//! name. The correct version of each program passes.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::process::Command;

use drivelab_crashtest::{Acks, Class, Device, Disk, Recording, Tokens, Violation};

type Program = Result<(), Box<dyn std::error::Error + Send + Sync>>;

const BLOCK: u64 = 4096;

fn recorded(drive: &str, program: impl FnOnce(&Device, &Acks) -> Program) -> Recording {
    let disk = Disk::new(drive).size(1 << 20);
    disk.record(program).expect("a recording")
}

/// Returns the values in a block: one if it is complete.
fn values(disk: &Device, block: u64) -> Result<Vec<u8>, Violation> {
    let mut data = vec![0; BLOCK as usize];
    disk.read_at(block * BLOCK, &mut data)?;
    data.dedup();
    Ok(data)
}

fn write(disk: &Device, block: u64, value: u8) -> std::io::Result<()> {
    disk.write_at(block * BLOCK, &[value; BLOCK as usize])
}

/// Checks that acknowledged data is in its block.
fn records(disk: &Device, acks: &Tokens<'_>) -> Result<(), Violation> {
    for number in acks.numbers() {
        if values(disk, number)? != [number as u8] {
            return Err(Violation::lost(number));
        }
    }
    Ok(())
}

/// Checks that block 0 refers to a block with the same value.
fn pointer(disk: &Device, _: &Tokens<'_>) -> Result<(), Violation> {
    let to = values(disk, 0)?[0];
    match to == 0 || values(disk, to.into())? == [to] {
        true => Ok(()),
        false => Err(Violation::corrupt(format!(
            "block {to} is not what refers to it"
        ))),
    }
}

/// Checks that the only failure has these properties, and that it is found again by its name.
fn found<C>(recording: &Recording, check: C, class: Class, needs: &str)
where
    C: Fn(&Device, &Tokens<'_>) -> Result<(), Violation> + Sync,
{
    let checks = recording.check(check);
    let verdict = checks.run().expect("a verdict");
    let [failure] = verdict.failures() else {
        panic!("{verdict}");
    };
    assert_eq!((failure.class, &*failure.needs.to_string()), (class, needs));
    let again = checks.replay(&verdict.name(failure));
    let error = again.expect_err("it fails again").to_string();
    assert!(error.contains(class.word()), "{error}");
}

fn holds<C>(recording: &Recording, check: C)
where
    C: Fn(&Device, &Tokens<'_>) -> Result<(), Violation> + Sync,
{
    let verdict = recording.check(check).run().expect("a verdict");
    assert!(verdict.held(), "{verdict}");
    let counts = verdict.report().counts;
    assert_eq!(counts.exhausted, counts.moments);
}

fn acknowledging(flush_first: bool) -> impl Fn(&Device, &Acks) -> Program {
    move |disk, acks| {
        for number in 1..=20 {
            write(disk, number.into(), number)?;
            if flush_first {
                disk.flush()?;
            }
            acks.ack(number);
            if !flush_first {
                disk.flush()?;
            }
        }
        Ok(())
    }
}

#[test]
fn an_acknowledgement_before_the_flush() {
    let early = recorded("950pro-256", acknowledging(false));
    found(&early, records, Class::Lost, "volatile cache");
    holds(&early.with_drive("pm9a3-960").expect("a drive"), records);
    holds(&recorded("950pro-256", acknowledging(true)), records);
    let lying = Disk::new("950pro-256").size(1 << 20).lying_flushes();
    let lying = lying.record(acknowledging(true)).expect("a recording");
    found(&lying, records, Class::Lost, "lying flush");
}

#[test]
fn a_missing_flush_between_data_and_the_pointer_to_it() {
    let program = |flush: bool, in_flight: bool| {
        move |disk: &Device, _: &Acks| {
            for number in 1..=9_u8 {
                let data = [number; BLOCK as usize];
                let pending = disk.begin_write(u64::from(number) * BLOCK, &data)?;
                match in_flight {
                    true => {
                        write(disk, 0, number)?;
                        pending.complete()?;
                    }
                    false => {
                        pending.complete()?;
                        if flush {
                            disk.flush()?;
                        }
                        write(disk, 0, number)?;
                    }
                }
                disk.flush()?;
            }
            Ok(())
        }
    };
    let missing = recorded("950pro-256", program(false, false));
    found(&missing, pointer, Class::Corrupt, "volatile cache");
    holds(&missing.with_drive("pm9a3-960").expect("a drive"), pointer);
    holds(&recorded("950pro-256", program(true, false)), pointer);
    for drive in ["950pro-256", "pm9a3-960"] {
        let both = recorded(drive, program(false, true));
        found(&both, pointer, Class::Corrupt, "in flight");
    }
}

#[test]
fn a_torn_record() {
    let program = |blocks: u64| {
        move |disk: &Device, _: &Acks| {
            let mut file = disk.file();
            for number in 1..6_u8 {
                file.seek(SeekFrom::Start(2 * BLOCK))?;
                file.write_all(&vec![number; (blocks * BLOCK) as usize])?;
                file.sync_all()?;
            }
            Ok(())
        }
    };
    let check = |blocks: u64| {
        move |disk: &Device, _: &Tokens<'_>| {
            let mut file = disk.file();
            let mut record = vec![0; (blocks * BLOCK) as usize];
            file.seek(SeekFrom::Start(2 * BLOCK))?;
            file.read_exact(&mut record)?;
            record.dedup();
            match record.len() {
                1 => Ok(()),
                _ => Err(Violation::corrupt("a mixed record")),
            }
        }
    };
    let two = recorded("pm9a3-960", program(2));
    found(&two, check(2), Class::Corrupt, "torn, in flight");
    holds(&recorded("950pro-256", program(1)), check(1));
    // A hard disk keeps or loses a sector.
    let hdd = recorded("wd6001fzwx", program(1));
    found(&hdd, check(1), Class::Corrupt, "torn, in flight");
    let whole = Disk::new("950pro-256").size(1 << 20).whole_writes();
    holds(&whole.record(program(2)).expect("a recording"), check(2));
}

/// A counter and its copy: recovery increments both, the copy first or last.
#[test]
fn a_recovery_that_is_not_idempotent() {
    let program = |disk: &Device, _: &Acks| {
        // An intent: add 1 to block 1 and to block 2.
        write(disk, 1, 5)?;
        write(disk, 2, 5)?;
        disk.flush()?;
        write(disk, 0, 1)?;
        disk.flush()?;
        Ok(())
    };
    let check = |absolute: bool| {
        move |disk: &Device, _: &Tokens<'_>| {
            let mut intent = values(disk, 0)?[0];
            if intent != 0 {
                for block in [1, 2] {
                    let value = match absolute {
                        true => 6,
                        false => values(disk, block)?[0] + 1,
                    };
                    write(disk, block, value)?;
                }
                disk.flush()?;
                intent = 0;
                write(disk, 0, intent)?;
                disk.flush()?;
            }
            let two = [values(disk, 1)?, values(disk, 2)?].concat();
            match &two[..] {
                [5, 5] | [6, 6] | [0 | 5, 0 | 5] => Ok(()),
                other => Err(Violation::corrupt(format!("{other:?}"))),
            }
        }
    };
    let recording = recorded("950pro-256", program);
    holds(&recording, check(false));
    let cut = |absolute| {
        let checks = recording.check(check(absolute)).second_cuts();
        let verdict = checks.run().expect("a verdict");
        let again = verdict.failures().first().map(|failure| {
            let again = checks.replay(&verdict.name(failure));
            again.expect_err("it fails again").to_string()
        });
        (verdict, again)
    };
    let (verdict, again) = cut(false);
    let [failure] = verdict.failures() else {
        panic!("{verdict}");
    };
    assert_eq!(failure.class, Class::SecondCut);
    let again = again.expect("a failure");
    assert!(again.contains("of the check's commands)"), "{again}");
    assert!(cut(true).0.held());
}

#[test]
fn panics_and_errors_of_the_program_are_failures() {
    let recording = recorded("950pro-256", acknowledging(true));
    let error = |disk: &Device, acks: &Tokens<'_>| {
        if !acks.contains(20) {
            disk.read_at(1 << 30, &mut [0])?;
        }
        Ok(())
    };
    found(&recording, error, Class::Unopenable, "nothing");
    let panic = |_: &Device, acks: &Tokens<'_>| {
        assert!(acks.tokens().len() > 3, "three records");
        Ok(())
    };
    found(&recording, panic, Class::Crashed, "nothing");
}

#[test]
fn bad_input_is_refused_with_what_would_be_right() {
    let refused = |disk: Disk| {
        disk.record(acknowledging(true))
            .expect_err("refused")
            .to_string()
    };
    assert!(refused(Disk::new("950por-256")).contains("950pro-256"));
    assert!(refused(Disk::new("950pro-256").size(1000)).contains("multiple of 512 B"));
    // The program writes to block 20.
    let small = refused(Disk::new("950pro-256").size(4 * BLOCK));
    assert!(
        small.contains("the program fails: 4096 B at 16384"),
        "{small}"
    );
    assert!(refused(Disk::new("mirror(2*950pro-256)")).contains("a pool"));
    let nothing = Disk::worst_ssd()
        .record(|_, _| Ok(()))
        .expect_err("nothing");
    assert!(nothing.to_string().contains("written nothing"));
    let recording = recorded("950pro-256", acknowledging(true));
    let never = recording.check(|_, _| Err(Violation::rule("never")));
    let error = never.run().expect_err("refused").to_string();
    assert!(
        error.contains("with all that was written: rule: never"),
        "{error}"
    );
    let checks = recording.check(records);
    for (name, said) in [
        ("x", "not the name of an image"),
        ("999", "there is no moment 999"),
        ("1@00000000", "has recorded other commands"),
    ] {
        let error = checks.replay(name).expect_err("no image").to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_saved_log_is_read_and_a_device_does_not_outlive_its_recording() {
    let mut kept = None;
    let recording = Disk::new("950pro-256").size(1 << 20).record(|disk, acks| {
        kept = Some(disk.clone());
        acks.begin("one\ntwo");
        disk.write_at(100, b"unaligned")?;
        disk.trim(0, 512)?;
        disk.zero(512, 512)?;
        disk.write_fua_at(BLOCK, b"x")?;
        Ok(())
    });
    let recording = recording.expect("a recording");
    assert_eq!(recording.log().tries, ["one two"]);
    assert_eq!(recording.log().commands.len(), 4);
    assert!(kept.expect("a device").flush().is_err());
    let again = crash::Log::read(recording.log().file().to_vec());
    assert_eq!(again.as_ref(), Ok(recording.log()));
}

#[test]
fn a_write_in_flight_must_be_in_whole_blocks() {
    recorded("950pro-256", |disk: &Device, _: &Acks| {
        for (offset, bytes) in [(0, 256), (256, 512), (1, 511)] {
            let refused = disk.begin_write(offset, &vec![b'A'; bytes]);
            let error = refused.expect_err("part of a block").to_string();
            assert!(error.contains("whole blocks of 512 B"), "{error}");
        }
        // Data that completed in the meantime stays.
        let pending = disk.begin_write(0, &[b'A'; 512])?;
        disk.write_at(512 + 256, b"B")?;
        disk.flush()?;
        pending.complete()?;
        let mut data = [0; 1024];
        disk.read_at(0, &mut data)?;
        assert_eq!((data[0], data[511], data[768]), (b'A', b'A', b'B'));
        Ok(())
    });
}

/// Run by the next test in a process of its own.
#[test]
#[ignore = "fails on purpose"]
fn fails_on_purpose() {
    recorded("950pro-256", acknowledging(false))
        .check(records)
        .assert();
}

#[test]
fn the_panic_names_the_variable_that_repeats_it() {
    let run = |crash: Option<&str>| {
        let mut command = Command::new(std::env::current_exe().expect("a path"));
        command.args(["--ignored", "--exact", "fails_on_purpose"]);
        command.env_remove("DRIVELAB_CRASH");
        if let Some(crash) = crash {
            command.env("DRIVELAB_CRASH", crash);
        }
        let output = command.output().expect("it starts");
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    };
    let (passed, said) = run(None);
    assert!(
        !passed && said.contains("needs      volatile cache"),
        "{said}"
    );
    let again = said.split("DRIVELAB_CRASH=").nth(1).expect("a line");
    let (name, rest) = again.split_once(' ').expect("a name");
    assert!(rest.starts_with("cargo test fails_on_purpose\n"), "{said}");
    let (passed, said) = run(Some(name));
    assert!(!passed && said.contains("fails: lost "), "{said}");
    // Nothing is lost at the end.
    let (passed, said) = run(Some("end"));
    assert!(passed, "{said}");
}
