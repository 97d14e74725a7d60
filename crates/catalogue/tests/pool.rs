//! Pools as users write them: files and expressions are equivalent, and all problems are reported.

use catalogue::DriveSheet;
use model::media::Medium;
use tier::{DriveConfig, Kind, PoolConfig, Target};

fn pool(words: &str) -> DriveSheet {
    catalogue::drive(words).unwrap_or_else(|problems| panic!("{}", problems.render(false)))
}

fn config(sheet: &DriveSheet) -> &PoolConfig<DriveConfig> {
    sheet.pool_config().expect("a pool")
}

fn messages(found: Result<DriveSheet, text::problem::Problems>) -> String {
    match found {
        Ok(sheet) => format!("no problem: {}", sheet.name),
        Err(problems) => problems.render(false),
    }
}

fn file(text: &str) -> String {
    messages(catalogue::drive_from_text("pool.toml", text))
}

#[test]
fn every_built_in_pool_loads_and_no_drive_has_its_name() {
    let pools = catalogue::pools().unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    assert!(!pools.is_empty());
    let names: Vec<&str> = pools.iter().map(|pool| &*pool.id).collect();
    assert_eq!(names, catalogue::pool_names());
    for pool in &pools {
        assert!(!catalogue::drive_names().contains(&&*pool.id));
        assert_eq!(config(pool).problems(), Vec::<String>::new());
        assert_eq!(catalogue::drive(&pool.id).as_ref(), Ok(pool));
    }
}

#[test]
fn a_file_and_an_expression_are_one_pool() {
    let text = "name = \"x\"\n[members]\np4801x-100 = { drive = \"p4801x-100\", count = 2 }\n\
                [tier]\nmirror = { kind = \"mirror\", members = \"p4801x-100.*\", reads = \"first\" }";
    let of_file = catalogue::drive_from_text("x.toml", text).expect("it is right");
    let written = pool("mirror(2*p4801x-100; reads=first)");
    assert_eq!(of_file.config, written.config);
    assert_eq!(of_file.pool, written.pool);
    let one = catalogue::drive("p4801x-100").expect("built in");
    assert_eq!(written.capacity, one.capacity - (1 << 20) - 8192);
    assert_eq!(
        (written.members.len(), config(&written).members.len()),
        (1, 2)
    );
}

#[test]
fn a_raidz_is_no_log() {
    let refused = messages(catalogue::drive(
        "intent-log(main=exos-x18-16tb, log=raidz(3*p4801x-100; parity=1))",
    ));
    assert!(refused.contains("a raidz cannot be a log"), "{refused}");
    for log in ["p4801x-100", "mirror(2*p4801x-100)", "stripe(2*p4801x-100)"] {
        let words = format!("intent-log(main=raidz(3*exos-x18-16tb), log={log})");
        assert!(catalogue::drive(&words).is_ok(), "{words}");
    }
}

#[test]
fn pools_nest_and_are_numbered_in_the_order_written() {
    let sheet = pool("stripe(2*mirror(2*p4801x-100), mirror(p4801x-100, p4800x-375); chunk=64k)");
    let config = config(&sheet);
    let members: Vec<&str> = config.members.iter().map(|it| &*it.name).collect();
    assert_eq!(
        members,
        [
            "p4801x-100.0",
            "p4801x-100.1",
            "p4801x-100.2",
            "p4801x-100.3",
            "p4801x-100.4",
            "p4800x-375"
        ]
    );
    let tiers: Vec<&str> = config.tiers.iter().map(|it| &*it.name).collect();
    assert_eq!(tiers, ["mirror.0", "mirror.1", "mirror.2", "stripe"]);
    let stripe = &config.tiers[3];
    assert_eq!(
        stripe.children,
        [Target::Tier(0), Target::Tier(1), Target::Tier(2)]
    );
    assert!(matches!(&stripe.kind, Kind::Stripe(it) if it.chunk == 65_536));
    assert_eq!(
        config.promise().loss.words(&members.map_names()),
        "(p4801x-100.0 and p4801x-100.1) or (p4801x-100.2 and p4801x-100.3) or (p4801x-100.4 and p4800x-375)"
    );
}

trait MapNames {
    fn map_names(&self) -> Vec<String>;
}

impl MapNames for Vec<&str> {
    fn map_names(&self) -> Vec<String> {
        self.iter().map(|&name| name.to_owned()).collect()
    }
}

#[test]
fn slices_lie_one_after_the_other() {
    let sheet = pool("s2-slog");
    let config = config(&sheet);
    let slice = |member, base, bytes| Target::Slice {
        member,
        base,
        bytes,
    };
    let (log, var) = (16 << 30, 74 << 30);
    let children = |name: &str| {
        let tier = config.tiers.iter().find(|it| it.name == name);
        tier.expect("a tier of the pool").children.clone()
    };
    assert_eq!(children("log"), [slice(0, 0, log), slice(1, 0, log)]);
    let of_var = [slice(0, log, var), slice(1, log, var)];
    assert_eq!(children("optavar"), of_var);
    let volumes = config.volumes();
    assert_eq!(volumes[1].name, "optavar");
    // 1 MiB is for the slice's label, and the mirror keeps 8 KiB of the last whole MiB.
    assert_eq!(volumes[1].bytes, var - (2 << 20));
}

#[test]
fn members_and_tiers_take_changes() {
    let change = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let changed = |words: &str, changes: &[_]| catalogue::drive_with(words, changes);
    let watts = |sheet: &DriveSheet| -> Vec<f64> {
        config(sheet)
            .members
            .iter()
            .map(|it| it.drive.idle_watts())
            .collect()
    };
    let one = changed(
        "optane-mirror",
        &[change("members.nda.1.xpoint.power.idle", "2 W")],
    );
    let one = one.expect("it is there");
    assert_eq!(watts(&one), [3.0, 2.0]);
    assert_eq!(
        (one.members.len(), one.pool.expect("a pool").members),
        (2, vec![0, 1])
    );
    let both = changed(
        "mirror(2*p4801x-100)",
        &[change("members.p4801x-100.xpoint.power.idle", "2 W")],
    );
    assert_eq!(watts(&both.expect("they are there")), [2.0, 2.0]);
    let tier = changed(
        "stripe(2*p4801x-100)",
        &[change("tier.stripe.chunk", "64 KiB")],
    );
    let Kind::Stripe(stripe) = &config(tier.as_ref().expect("it is there")).tiers[0].kind else {
        panic!("no stripe");
    };
    assert_eq!(stripe.chunk, 65_536);
    insta::assert_snapshot!(messages(changed(
        "optane-mirror",
        &[
            change("members.nda.2.xpoint.power.idle", "2 W"),
            change("members.nda.0.xpoint.power.idel", "2 W"),
            change("tier.miror.reads", "first"),
            change("serve", "mirror"),
        ]
    )));
}

#[test]
fn a_pool_is_as_a_drive_to_its_host() {
    let sheet = pool("mirror(2*p4801x-100)");
    let one = pool("p4801x-100");
    assert_eq!(sheet.io_queues, one.io_queues);
    assert_eq!(sheet.power_loss_protection, Some(true));
    assert_eq!(sheet.config.max_transfer(), one.config.max_transfer());
    assert_eq!(sheet.price_usd, one.price_usd.map(|price| price * 2.0));
    let formats: Vec<String> = sheet
        .management
        .lba_formats
        .iter()
        .map(|it| it.to_string())
        .collect();
    assert_eq!(formats, ["512", "4096"]);
    assert_eq!(
        pool("mirror(2*950pro-256)").power_loss_protection,
        Some(false)
    );
}

#[test]
fn everything_wrong_with_a_file_comes_at_once() {
    insta::assert_snapshot!(file(
        r#"nam = "A pool"
serve = ["tank", "vra"]

[members]
nda = { drive = "p4801x-100", count = 2, sets = { "xpoint.power.idle" = "3 W" } }
sas = { drive = "sas-ssd-80", count = 0 }
raw = "p4800x-375"
own = { drive = "optane-mirror" }

[slices]
slog = { of = "nda.*", size = "16 GiB" }
ovar = { of = "nda.*", size = "16 Gb" }
huge = { of = "own", size = "1 TB" }

[tier]
log = { kind = "miror", members = "slog.*" }
var = { kind = "mirror", members = "ovr.*", read = "first" }
whole = { kind = "mirror", members = ["nda.0", "slog.0"] }

[tier.tank]
kind = "stripe"
members = "sas.*"
chunk = "512 kB"

[tier.round]
kind = "concat"
members = ["round", "huge"]

[clusters]
nodes = 4
"#
    ));
}

/// Returns the file of a cluster of two nodes with these tables at its end.
fn cluster(tables: &str) -> String {
    format!(
        "name = \"x\"\n[members]\nc = {{ drive = \"p5800x-400\" }}\nd = {{ drive = \"d7-p5510-3840\", count = 2 }}\n\
         [tier.group]\nkind = \"write-back-cache\"\ncache = \"c\"\ncapacity = \"d.*\"\nlike = \"vsan\"\n{tables}"
    )
}

#[test]
fn a_cluster_is_its_group_on_each_node() {
    let text = cluster("[cluster]\nnodes = 2\ngroups_per_node = 2\ngroup = \"group\"\n");
    let of_file = catalogue::drive_from_text("x.toml", &text).expect("it is right");
    let group = "write-back-cache(cache=p5800x-400, capacity=2*d7-p5510-3840; like=vsan)";
    let written = pool(&format!("cluster(4*{group})"));
    let (file, words) = (config(&of_file), config(&written));
    assert_eq!(file.capacity_bytes(), words.capacity_bytes());
    let kinds = |config: &PoolConfig<DriveConfig>| -> Vec<Kind> {
        config.tiers.iter().map(|it| it.kind.clone()).collect()
    };
    assert_eq!(kinds(file), kinds(words));
    assert_eq!(
        file.words(),
        "acknowledged is durable, lost if groups of two nodes that share an object die"
    );
    let names: Vec<&str> = file.members.iter().map(|it| &*it.name).collect();
    assert_eq!(
        names[..4],
        ["node0.0.c", "node0.0.d.0", "node0.0.d.1", "node0.1.c"]
    );
    assert_eq!(names.len(), 12);
    // A name in the file reaches all its copies, and so do the tables of the cluster.
    let changes = [
        ("members.c.xpoint.power.idle", "2 W"),
        ("tier.group.destage_from", "50 %"),
        ("node.cpu.client", "20 us"),
    ];
    let changes = changes.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let home = std::env::temp_dir().join("a-cluster-is-its-group.toml");
    std::fs::write(&home, &text).expect("a file");
    let changed = catalogue::drive_with(&home.to_string_lossy(), &changes).expect("it is right");
    let changed = config(&changed);
    let caches = changed.members.iter().filter(|it| it.name.ends_with(".c"));
    assert!(caches.clone().count() == 4);
    assert!(caches.clone().all(|it| it.drive.idle_watts() == 2.0));
    let Some(cluster) = changed.cluster() else {
        panic!("no cluster");
    };
    assert_eq!(cluster.node.client, model::Span::from_us(20));
}

#[test]
fn everything_wrong_with_a_cluster_comes_at_once() {
    let wrong = [
        cluster("[cluster]\nnodes = 2\n"),
        cluster(
            "[cluster]\nnodes = 4\nfold = 3\nreplicas = 9\ngroups_per_node = 0\ngroup = \"grup\"\ncomponent = \"1 Gb\"\n\
             [network]\nrate = \"100 Gbit/s\"\ndelai = \"15 us\"\n\
             [node]\ncores = 0\ncpu = { client = \"12\", scale = \"1 x\" }\npower.idle = { value = \"420 W\", kind = \"guessed\" }\n",
        ),
        cluster("[cluster]\nnodes = 2\ngroup = \"group\"\n").replace("write-back", "write-bac"),
        cluster("[cluster]\nnodes = 3\nfold = 2\ngroup = \"group\"\n"),
        cluster("[cluster]\nnodes = 2\ngroup = \"group\"\n").replacen(
            "name",
            "serve = [\"group\"]\nnetwork = 3\nname",
            1,
        ),
    ];
    insta::assert_snapshot!(wrong.map(|text| file(&text)).join("\n\n---\n\n"));
}

#[test]
fn what_is_wrong_only_as_a_whole_is_told() {
    let two = "name = \"x\"\n[members]\na = { drive = \"p4801x-100\", count = 2 }\n";
    let texts = [
        String::from("name = \"x\"\n[members]\n"),
        String::from("name = \"x\"\n[tier]\n"),
        format!("{two}[tier]\nm = {{ kind = \"mirror\", members = \"a.0\" }}"),
        format!("{two}[tier]\nm = {{ kind = \"mirror\", members = \"a\" }}"),
        format!("{two}[tier]\nm = {{ kind = \"mirror\", members = [\"a.0\", \"a.0\"] }}"),
        format!(
            "{two}[tier]\nm = {{ kind = \"concat\", members = \"n\" }}\nn = {{ kind = \"concat\", members = \"m\" }}"
        ),
        format!(
            "{two}[slices]\ns = {{ of = \"a.0\", size = \"90 GB\" }}\nt = {{ of = \"a.0\", size = \"20 GB\" }}\n\
             [tier]\nm = {{ kind = \"mirror\", members = [\"s\", \"t\"], chunk = 3, kid = {{ a = 3 }} }}"
        ),
        format!(
            "{two}b = {{ drive = \"p4800x-375\" }}\n[tier]\nm = {{ kind = \"mirror\", members = \"a.*\" }}"
        ),
        String::from("name = \"x\n[tier]"),
    ];
    insta::assert_snapshot!(texts.map(|text| file(&text)).join("\n\n---\n\n"));
}

#[test]
fn errors_point_into_the_expression() {
    let wrong = [
        "mirror(2*p4801x-1000)",
        "miror(2*p4801x-100)",
        "mirror(2*p4801x-100",
        "mirror(2*p4801x-100))",
        "mirror()",
        "mirror(0*p4801x-100)",
        "mirror(p4801x-100)",
        "mirror(2*p4801x-100; chunk=512k)",
        "stripe(2*p4801x-100; chunk=511)",
        "stripe(2*p4801x-100; chunk)",
        "stripe(2*p4801x-100; chunk=64k, chunk=32k)",
        "stripe(2*p4801x-100; members=p4800x-375)",
        "stripe(main=2*p4801x-100)",
        "stripe(1000*mirror(2*p4801x-100))",
        "stripe(2*p4801x-100; chunk=64k; reads=first)",
        "2*mirror(2*p4801x-100)",
        "mirror(optane-mirror, ./none.toml)",
        "mirror(p4801x-100, ; reads=first)",
    ];
    let said = wrong.map(|words| messages(catalogue::drive(words)));
    insta::assert_snapshot!(said.join("\n\n"));
}

#[test]
fn an_expression_nests_only_so_deep() {
    let deep = format!("{}p4801x-100{}", "concat(".repeat(5000), ")".repeat(5000));
    let said = messages(catalogue::drive(&deep));
    assert!(said.contains("pools are nested too deeply"), "{said}");
}

#[test]
fn a_read_cache_takes_the_settings_of_a_known_one_and_its_own() {
    use tier::{Policy, ReadCacheConfig};
    let of = |words: &str| match &config(&pool(words)).tiers[0].kind {
        Kind::ReadCache(config) => config.clone(),
        other => panic!("{other:?}"),
    };
    let plain = of("read-cache(cache=p4801x-100, main=d7-p5510-3840)");
    assert_eq!((plain.line, plain.sequential_cutoff), (64 << 10, None));
    let like = of("read-cache(cache=p4801x-100, main=d7-p5510-3840; like=bcache, policy=clock)");
    let expected = ReadCacheConfig {
        policy: Policy::Clock,
        line: 4096,
        sequential_cutoff: Some(4 << 20),
        survives_power_cut: true,
        ..plain
    };
    assert_eq!(like, expected);
    let l2arc = of("read-cache(cache=p4801x-100, main=d7-p5510-3840; like=l2arc, memory=8GiB)");
    let feed = l2arc.feed.expect("it is fed from memory");
    assert_eq!((l2arc.policy, l2arc.line), (Policy::Arc, 128 << 10));
    assert_eq!(
        (feed.memory, feed.most, feed.headroom),
        (8 << 30, 32 << 20, 8)
    );
    let chosen =
        of("read-cache(cache=p4801x-100, main=d7-p5510-3840; like=open-cas, fill_at_miss=3)");
    assert_eq!((chosen.fill_at_miss, chosen.fill_from), (3, 0.8));
    let unfed = "read-cache(cache=p4801x-100, main=d7-p5510-3840; feed_every=1s)";
    let wrong = messages(catalogue::drive(unfed));
    assert!(wrong.contains("feed_every"), "{wrong}");
    let wrong = messages(catalogue::drive(
        "read-cache(cache=p4801x-100; like=zfs, line=5k)",
    ));
    assert!(wrong.contains("main") && wrong.contains("line"), "{wrong}");
}

#[test]
fn a_write_back_cache_takes_the_laws_of_a_known_one_and_its_own() {
    use tier::{Durability, WriteBackConfig};
    let of = |words: &str| match &config(&pool(words)).tiers[0].kind {
        Kind::WriteBack(config) => config.clone(),
        other => panic!("{other:?}"),
    };
    let drives = "write-back-cache(cache=d7-p5600-1600, capacity=2*d7-p5510-3840";
    let cache = catalogue::drive("d7-p5600-1600").expect("built in");
    let usable = cache.capacity / 4096 * 4096 - (1 << 20);
    let plain = WriteBackConfig {
        buffer_limit: usable,
        ..WriteBackConfig::PLAIN
    };
    assert_eq!(of(&format!("{drives})")), plain);
    assert_eq!(of(&format!("{drives}; like=vsan)")), WriteBackConfig::VSAN);
    let own =
        "like=vsan, buffer_limit=1.2TB, destage_from=45%, durability=flush, congestion_delay=1ms";
    let mut expected = WriteBackConfig::VSAN;
    expected.buffer_limit = 1_200_000_000_000;
    expected.destage.from = 0.45;
    expected.durability = Durability::Flush;
    expected.congestion.delay = model::Span::from_ms(1);
    assert_eq!(of(&format!("{drives}; {own})")), expected);
    let wrong = messages(catalogue::drive(
        "write-back-cache(cache=p5800x-400; like=zfs, chunk=5k, segment=1, destage_hurry=10%)",
    ));
    for key in ["capacity", "like", "chunk", "segment", "destage_hurry"] {
        assert!(wrong.contains(key), "{key}: {wrong}");
    }
    let group = pool("group");
    let promise = config(&group).promise();
    let names: Vec<String> = config(&group)
        .members
        .iter()
        .map(|it| it.name.clone())
        .collect();
    assert_eq!(
        promise.words(&names),
        "acknowledged is durable, lost if cache or (cap.0 or cap.1 or cap.2)"
    );
}

#[test]
fn a_write_back_cache_takes_the_policies_of_known_ones_by_their_keys() {
    use tier::{Cleaning, WriteBackConfig};
    let of = |words: &str| match &config(&pool(words)).tiers[0].kind {
        Kind::WriteBack(config) => config.clone(),
        other => panic!("{other:?}"),
    };
    let drives = "write-back-cache(cache=d7-p5600-1600, capacity=2*d7-p5510-3840";
    let usable = of(&format!("{drives})")).buffer_limit;
    for (word, known) in [
        ("dm-writecache", WriteBackConfig::DM_WRITECACHE),
        ("bcache", WriteBackConfig::BCACHE),
        ("open-cas", WriteBackConfig::OPEN_CAS),
    ] {
        let known = WriteBackConfig {
            buffer_limit: usable,
            ..known
        };
        assert_eq!(of(&format!("{drives}; like={word})")), known);
    }
    let acp = of(&format!("{drives}; like=open-cas, clean=acp)"));
    assert_eq!(acp.destage.cleaning, WriteBackConfig::ACP);
    let own = of(&format!(
        "{drives}; clean=rate, clean_target=20%, pass_from=50%)"
    ));
    assert!(matches!(own.destage.cleaning, Cleaning::Rate(law) if law.target == 0.2));
    assert_eq!(
        own.passing.map(|it| (it.from, it.fua_from)),
        Some((0.5, 1.0))
    );
    let often = of(&format!("{drives}; like=open-cas, fill_at_miss=3)"));
    let often = often.passing.map(|it| (it.fill_at_miss, it.fill_from));
    assert_eq!(often, Some((3, 0.8)));
    // Keys of a cleaner that is not selected, and an unknown cleaner.
    let wrong = messages(catalogue::drive(
        "write-back-cache(cache=p5800x-400, capacity=d7-p5510-3840; like=open-cas, clean_target=20%)",
    ));
    assert!(wrong.contains("clean_target"), "{wrong}");
    let wrong = messages(catalogue::drive(
        "write-back-cache(cache=p5800x-400, capacity=d7-p5510-3840; clean=lru, pass_from=150%, fill_at_miss=0)",
    ));
    for key in ["alru", "pass_from", "fill_at_miss"] {
        assert!(wrong.contains(key), "{key}: {wrong}");
    }
    let marks = of(&format!(
        "{drives}; like=dm-writecache, destage_from=60%, destage_until=20%, durability=ack)"
    ));
    assert_eq!((marks.destage.from, marks.commit), (0.6, None));
    assert!((marks.destage.band - 0.4).abs() < 1e-9);
    let wrong = messages(catalogue::drive(
        "write-back-cache(cache=p5800x-400, capacity=d7-p5510-3840; destage_until=40%, commit_blocks=7)",
    ));
    for key in ["destage_until", "commit_blocks"] {
        assert!(wrong.contains(key), "{key}: {wrong}");
    }
    let wrong = messages(catalogue::drive(
        "write-back-cache(cache=p5800x-400, capacity=d7-p5510-3840; commit_blocks=7, commit_time=1s)",
    ));
    assert!(wrong.contains("nothing to commit"), "{wrong}");
}

#[test]
fn an_intent_log_has_the_settings_of_zfs_and_figures_for_its_software() {
    use model::Span;
    use tier::{IntentLogConfig, Logbias, SyncPolicy};
    fn of(sheet: &DriveSheet) -> &IntentLogConfig {
        let tiers = &config(sheet).tiers;
        match &tiers[tiers.len() - 1].kind {
            Kind::IntentLog(config) => config,
            other => panic!("{other:?}"),
        }
    }
    let plain = pool("intent-log(main=mirror(2*exos-x18-16tb), log=p4801x-100)");
    let log = of(&plain);
    assert_eq!((log.record, log.slog_bulk), (128 << 10, 64 << 20));
    assert_eq!(log.txg, Span::from_ms(5000));
    assert!(log.size > 15_000_000_000_000 && log.size < 16_000_000_000_000);
    // Software costs are reported as assumed.
    let cpu: Vec<_> = plain
        .figures
        .iter()
        .filter(|it| it.key.contains(".cpu."))
        .collect();
    assert_eq!(cpu.len(), 5);
    assert!(
        cpu.iter()
            .all(|it| it.kind == catalogue::FigureKind::Assumed)
    );
    let changed = "intent-log(main=raidz(6*exos-x18-16tb; parity=2), log=p4801x-100; sync=always, \
                   logbias=throughput, record=16k, zil_slog_bulk=768k, size=1t, ram=16g)";
    let changes = [(
        String::from("tier.intent-log.cpu.commit"),
        String::from("21 us"),
    )];
    let changed = catalogue::drive_with(changed, &changes);
    let changed = changed.unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    let log = of(&changed);
    assert_eq!(
        (log.sync, log.logbias),
        (SyncPolicy::Always, Logbias::Throughput)
    );
    assert_eq!((log.record, log.slog_bulk), (16 << 10, 768 << 10));
    assert_eq!((log.size, log.ram), (1 << 40, 16 << 30));
    assert_eq!(log.cpu.commit, Span::from_us(21));
}

#[test]
fn what_makes_no_intent_log_is_told_with_its_place() {
    let wrong = |words: &str| messages(catalogue::drive(words));
    let large = wrong("intent-log(main=mirror(2*p4801x-100); size=90g, record=5k, sync=sometimes)");
    assert!(
        large.contains("a power of two") && large.contains("sometimes"),
        "{large}"
    );
    let full = wrong("intent-log(main=mirror(2*p4801x-100); size=92g)");
    assert!(full.contains("leaves too little"), "{full}");
    let alone = wrong("raidz(4*p4801x-100)");
    assert!(alone.contains("main of an intent-log"), "{alone}");
    // The problem names the raidz tier (`main`), not the tier above it.
    let below = wrong("read-cache(cache=p4801x-100, main=raidz(4*p4801x-100))");
    assert!(below.contains("main: its blocks may not"), "{below}");
    let few = wrong("intent-log(main=raidz(3*p4801x-100; parity=2))");
    assert!(few.contains("at least 4"), "{few}");
}
