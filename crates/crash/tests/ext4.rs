//! The reader of ext4 against e2fsprogs: it names the same files for the same blocks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crash::ext4::Ext4;
use crash::places::Owner;
use crash::{Fork, Image};

/// Runs a program of e2fsprogs; `None` if this machine has none.
fn run(program: &str, args: &[&str]) -> Option<String> {
    let path = format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_default()
    );
    let output = Command::new(program).args(args).env("PATH", path).output();
    let output = output.ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {said}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Makes an image with files; `None` if this machine has no e2fsprogs.
fn image(folder: &Path, options: &[&str]) -> Option<PathBuf> {
    let (files, image) = (folder.join("files"), folder.join("image"));
    fs::create_dir_all(files.join("deep/er")).expect("a folder");
    fs::write(files.join("small"), b"1234").expect("written");
    fs::write(files.join("large"), vec![7; 3_000_000]).expect("written");
    fs::write(files.join("deep/er/file"), vec![1; 5000]).expect("written");
    // More entries than a block of a directory has.
    for number in 0..300 {
        let name = format!("deep/entry-with-a-long-name-{number:04}");
        fs::write(files.join(name), [2; 10]).expect("written");
    }
    let named = [&*files, &*image].map(|it| it.to_str().expect("UTF-8"));
    let fixed = ["-q", "-F", "-d", named[0], named[1], "32M"];
    run("mkfs.ext4", &[options, &fixed].concat())?;
    Some(image)
}

fn read(image: &Path) -> Image {
    let mut read = Image::default();
    read.write(0, &fs::read(image).expect("an image"));
    read
}

/// Returns the inodes of blocks and the paths of inodes that debugfs reports.
fn by_debugfs(image: &Path, blocks: &[u64]) -> BTreeMap<u64, String> {
    let image = image.to_str().expect("UTF-8");
    let ask = |request: String| run("debugfs", &["-R", &request, image]).expect("debugfs");
    let join = |numbers: &[u64]| {
        let words = numbers.iter().map(u64::to_string);
        words.collect::<Vec<String>>().join(" ")
    };
    let pairs = |text: &str| -> Vec<(u64, String)> {
        let lines = text.lines().skip(1).filter_map(|it| it.split_once('\t'));
        lines
            .filter_map(|(number, rest)| Some((number.parse().ok()?, rest.trim().to_owned())))
            .collect()
    };
    // An argument has at most 128 KiB.
    let parts = blocks
        .chunks(8192)
        .map(|it| ask(format!("icheck {}", join(it))));
    let inodes: Vec<(u64, String)> = parts.flat_map(|it| pairs(&it)).collect();
    let inodes: Vec<(u64, u64)> = { inodes.into_iter() }
        .filter_map(|(block, inode)| Some((block, inode.parse().ok()?)))
        .collect();
    let mut numbers: Vec<u64> = inodes.iter().map(|it| it.1).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let paths = pairs(&ask(format!("ncheck {}", join(&numbers))));
    let mut paths: BTreeMap<u64, String> = paths.into_iter().collect();
    // ncheck has no name for the root.
    paths.insert(2, "/".into());
    let path = |inode: &u64| paths.get(inode).map(|it| it.replace("//", "/"));
    { inodes.iter() }
        .filter_map(|(block, inode)| Some((*block, path(inode)?)))
        .collect()
}

#[test]
fn the_owners_of_all_blocks_are_those_of_debugfs() {
    for options in [
        &["-b", "4096"][..],
        &["-b", "1024"],
        &["-b", "4096", "-O", "^64bit,^metadata_csum"],
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(path) = image(folder.path(), options) else {
            return;
        };
        let block: u64 = if options.contains(&"1024") {
            1024
        } else {
            4096
        };
        let image = read(&path);
        let fork = Fork::new(image.clone());
        let files = Ext4::read(&fork).expect("ext4");
        let blocks: Vec<u64> = (0..(32 << 20) / block).collect();
        let expected = by_debugfs(&path, &blocks);
        assert!(expected.len() > 700, "{options:?}: {}", expected.len());
        for number in blocks {
            let places = files.places(&fork, number * block, (number + 1) * block);
            let [place] = &places[..] else {
                panic!("{options:?}: {places:?}");
            };
            // debugfs calls the journal inode 8, and has no name for the reserved descriptors.
            let found = place.owner.path();
            assert_eq!(
                found,
                expected.get(&number).map(|it| &**it),
                "{options:?}: block {number}: {:?}",
                place.owner
            );
        }
    }
}

#[test]
fn offsets_in_a_file_are_those_of_its_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(path) = image(folder.path(), &["-b", "4096"]) else {
        return;
    };
    let image = read(&path);
    let fork = Fork::new(image.clone());
    let files = Ext4::read(&fork).expect("ext4");
    let mut bytes = 0;
    for place in files.places(&fork, 0, 32 << 20) {
        let Owner::File { path, offset } = &place.owner else {
            continue;
        };
        if path == "/large" {
            assert_eq!(*offset, bytes);
            bytes += place.end - place.start;
            let mut data = [0; 8];
            fork.read(place.start, &mut data);
            assert_eq!(data, [7; 8]);
        }
    }
    assert_eq!(bytes, 3_000_000_u64.next_multiple_of(4096));
}

/// Any bytes are valid input: the reader neither panics nor runs without end.
#[test]
fn an_invalid_file_system_is_read_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(path) = image(folder.path(), &["-b", "4096"]) else {
        return;
    };
    let bytes = fs::read(path).expect("an image");
    for seed in 0..20_u64 {
        let mut state = seed;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e);
            (state >> 33) as usize % below
        };
        let mut wrong = bytes.clone();
        for _ in 0..300 {
            // The first blocks have the structures and the inodes.
            let at = next(400 << 10);
            wrong[at] = next(256) as u8;
        }
        let mut image = Image::default();
        image.write(0, &wrong);
        let fork = Fork::new(image.clone());
        if let Some(files) = Ext4::read(&fork) {
            let places = files.places(&fork, 0, 32 << 20);
            assert_eq!(places.last().map(|it| it.end), Some(32 << 20));
        }
    }
}

/// Checks that all blocks of an invalid image have owners.
fn is_read(path: &Path, change: impl FnOnce(&mut [u8])) {
    let mut bytes = fs::read(path).expect("an image");
    change(&mut bytes);
    let mut image = Image::default();
    image.write(0, &bytes);
    let fork = Fork::new(image);
    let files = Ext4::read(&fork).expect("ext4");
    let places = files.places(&fork, 0, 32 << 20);
    assert_eq!(places.last().map(|it| it.end), Some(32 << 20));
}

#[test]
fn an_inode_table_at_the_end_of_all_addresses_is_read_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(path) = image(folder.path(), &["-b", "1024", "-O", "64bit"]) else {
        return;
    };
    // Both halves of the address of the first inode table; the inode of the journal is in its second block.
    is_read(&path, |bytes| {
        bytes[2048 + 8..][..4].fill(0xff);
        bytes[2048 + 40..][..4].fill(0xff);
    });
}

#[test]
fn transactions_of_the_journal_are_read_and_replayed() {
    for options in ["^64bit,^metadata_csum", "metadata_csum,64bit"] {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(path) = image(folder.path(), &["-b", "4096", "-O", options]) else {
            return;
        };
        let before = read(&path);
        let fork = Fork::new(before.clone());
        let places = Ext4::read(&fork).expect("ext4").places(&fork, 0, 32 << 20);
        let root = |owner: &Owner| matches!(owner, Owner::Directory { path, .. } if path == "/");
        let root = places.iter().find(|it| root(&it.owner)).expect("the root");
        // A new version of the root's block, in which `small` has another name.
        let mut block = vec![0; 4096];
        fork.read(root.start, &mut block);
        let at = block
            .windows(5)
            .position(|it| it == b"small")
            .expect("small");
        block[at..at + 5].copy_from_slice(b"other");
        let version = folder.path().join("version");
        fs::write(&version, &block).expect("written");
        let script = folder.path().join("script");
        let write = format!(
            "jo\njw -b {} {}\njc\n",
            root.start / 4096,
            version.display()
        );
        fs::write(&script, write).expect("written");
        let named = [&*script, &*path].map(|it| it.to_str().expect("UTF-8"));
        run("debugfs", &["-w", "-f", named[0], named[1]]).expect("debugfs");

        // A journal of two blocks that begins after its end.
        is_read(&path, |bytes| {
            let head = [0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 4];
            let journal = bytes
                .chunks(4096)
                .position(|block| block.starts_with(&head));
            let journal = 4096 * journal.expect("a journal");
            bytes[journal + 16..][..4].copy_from_slice(&2_u32.to_be_bytes());
            bytes[journal + 20..][..4].fill(0xff);
        });
        let after = read(&path);
        let fork = Fork::new(after.clone());
        let files = Ext4::read(&fork).expect("ext4");
        let places = files.places(&Fork::new(before.clone()), 0, 32 << 20);
        let texts: Vec<String> = { places.iter() }
            .filter(|it| {
                matches!(
                    it.owner,
                    Owner::Journal {
                        transaction: Some(_),
                        ..
                    }
                )
            })
            .map(|it| it.owner.to_string())
            .collect();
        let head = texts[0].rsplit_once(": ").expect("a part").0.to_owned();
        let parts = [
            "first block",
            "directory / (removes small, adds other)",
            "commit block of directory / (removes small, adds other)",
        ];
        assert_eq!(texts, parts.map(|it| format!("{head}: {it}")), "{options}");
        // The mount would show the new name.
        let names: Vec<&str> = places.iter().filter_map(|it| it.owner.path()).collect();
        assert!(
            names.contains(&"/other") && !names.contains(&"/small"),
            "{names:?}"
        );
    }
}
