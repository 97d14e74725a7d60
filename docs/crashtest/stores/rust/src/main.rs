//! Writes to a store in Rust, or checks it: rust-store load redb|sled COUNT, rust-store check redb|sled. Values have
//! STORES_WORDS words of 7 bytes [default: 400].

use std::io::Write;
use std::process::exit;

use redb::ReadableDatabase;

const TABLE: redb::TableDefinition<u64, Vec<u8>> = redb::TableDefinition::new("orders");

fn value(number: u64) -> Vec<u8> {
    let words = std::env::var("STORES_WORDS").map_or(400, |it| it.parse().expect("a number"));
    format!("{number:06} ").repeat(words).into_bytes()
}

enum Store {
    Redb(redb::Database),
    Sled(sled::Db),
}

type Error = Box<dyn std::error::Error>;

impl Store {
    fn open(name: &str, folder: &str) -> Result<Store, Error> {
        Ok(match name {
            "redb" => Store::Redb(redb::Database::create(format!("{folder}/r.redb"))?),
            _ => Store::Sled(sled::open(format!("{folder}/sled"))?),
        })
    }

    fn put(&self, number: u64) -> Result<(), Error> {
        match self {
            Store::Redb(db) => {
                let txn = db.begin_write()?;
                txn.open_table(TABLE)?.insert(number, value(number))?;
                txn.commit()?;
            }
            Store::Sled(db) => {
                db.insert(number.to_be_bytes(), value(number))?;
                db.flush()?;
            }
        }
        Ok(())
    }

    fn get(&self, number: u64) -> Result<Option<Vec<u8>>, Error> {
        Ok(match self {
            Store::Redb(db) => {
                let txn = db.begin_read()?;
                txn.open_table(TABLE)?.get(number)?.map(|it| it.value())
            }
            Store::Sled(db) => db.get(number.to_be_bytes())?.map(|it| it.to_vec()),
        })
    }
}

fn end(code: i32, words: String) -> ! {
    println!("{words}");
    exit(code)
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let variable = |name| std::env::var(name).expect("set");
    let (acks, is_check) = (variable("DRIVELAB_ACKS"), args[1] == "check");
    let tokens = if is_check {
        std::fs::read_to_string(&acks).expect("read")
    } else {
        String::new()
    };
    if is_check {
        // An assertion of the store.
        std::panic::set_hook(Box::new(|panic| {
            end(
                12,
                format!("unopenable: {}", panic.to_string().replace('\n', " ")),
            )
        }));
    }
    let store = Store::open(&args[2], &variable("DRIVELAB_DIR"))
        .unwrap_or_else(|error| end(12, format!("unopenable: {error}")));
    if is_check {
        for token in tokens.lines() {
            let number = token.parse().expect("a number");
            match store.get(number) {
                Err(error) => end(12, format!("unopenable: {error}")),
                Ok(None) => end(10, format!("lost {number}")),
                Ok(Some(found)) if found != value(number) => {
                    end(11, format!("corrupt: value of {number}"))
                }
                Ok(Some(_)) => {}
            }
        }
        return;
    }
    let mut acks = std::fs::File::options()
        .write(true)
        .open(acks)
        .expect("opened");
    for number in 1..=args[3].parse().expect("a number") {
        store.put(number).expect("put");
        writeln!(acks, "{number}").expect("written");
    }
}
