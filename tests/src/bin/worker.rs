//! A worker process, as the crash tests order it.
//!
//! ```text
//! worker URL DIR [--stall MS] [--grace MS] [--workers N] [--only NAME]… [--open GATE]… [--lose-claims N]
//! worker URL DIR --migrate [--bare]
//! ```
//!
//! The database of `URL` is of any kind; the file of effects is in `DIR`. `--bare` connects as the URL
//! says and no more, as a caller's first pool may.
//!
//! Says `READY instance`, then what its attempts do, `HEALTH up` or `HEALTH down …` and `INSTANCE id`
//! when asked, `LOST n` claim replies, `CLOCK seconds` since 1970, and `STOPPED` after a shutdown by
//! SIGTERM or SIGINT. Takes `open GATE`, `close GATE`, `health`, `instance`, `lost` and `clock` as
//! lines. Ends when its standard input does, so that it never outlives its test.

use std::error::Error;
use std::io::BufRead as _;
use std::path::PathBuf;
use std::pin::pin;
use std::process::exit;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use asynccmd::testing::Faults;
use asynccmd::{Pool, Runtime};
use asynccmd_tests::harness::{Back, OnMysql, OnPostgres, OnSqlite};
use asynccmd_tests::work::{Desk, finish_in, registry};
use futures_util::FutureExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orders = Orders::parse(std::env::args().skip(1))?;
    match orders.url.split(':').next() {
        Some("mysql") => run::<OnMysql>(orders).await,
        Some("postgres") => run::<OnPostgres>(orders).await,
        Some("sqlite") => run::<OnSqlite>(orders).await,
        _ => Err(format!("no back end for {}", orders.url).into()),
    }
}

async fn run<B: Back>(orders: Orders) -> Result<(), Box<dyn Error>> {
    if orders.migrate {
        return migrate::<B>(&orders).await;
    }
    let desk = Desk::new(&orders.dir)?;
    orders.open.iter().for_each(|gate| desk.open(gate));
    let pool = B::pool_at(&orders.url, 4).await;
    asynccmd::migrate(&pool).await?;
    let faults = Faults::new();
    faults.drop_claim_replies(orders.lose_claims);
    let runtime = Runtime::builder(pool)
        .name(format!("worker {}", std::process::id()))
        .registry(registry(&orders.only))
        .state(desk.clone())
        .state(finish_in::<B::DB>())
        .pool(Pool::new("default").workers(orders.workers))
        .stall_timeout(orders.stall)
        .grace(orders.grace)
        .faults(faults.clone())
        .start()
        .await?;
    let runtime = Arc::new(runtime);
    {
        let (runtime, threads) = (Arc::clone(&runtime), tokio::runtime::Handle::current());
        // Not tokio's standard input, which would keep the process from ending.
        std::thread::spawn(move || obey(&runtime, &desk, &faults, &threads));
    }
    let mut end = pin!(runtime.shutdown_on_signal());
    // Once polled, it listens to signals.
    if (&mut end).now_or_never().is_none() {
        println!("READY {}", runtime.instance());
        end.await;
    }
    println!("STOPPED");
    Ok(())
}

/// Takes orders until there are no more.
fn obey(runtime: &Arc<Runtime>, desk: &Desk, faults: &Faults, threads: &tokio::runtime::Handle) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        match line.split_once(' ') {
            Some(("open", gate)) => desk.open(gate),
            Some(("close", gate)) => desk.close(gate),
            None if line == "health" => {
                let client = runtime.client();
                threads.spawn(async move {
                    let health = client.admin().health().await.to_string();
                    println!("HEALTH {}", health.replace('\n', "; "));
                });
            }
            None if line == "instance" => println!("INSTANCE {}", runtime.instance()),
            None if line == "clock" => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                println!("CLOCK {}", now.unwrap_or_default().as_secs());
            }
            None if line == "lost" => println!("LOST {}", faults.dropped_claim_replies()),
            _ => eprintln!("not an order: {line}"),
        }
    }
    exit(9);
}

/// Makes the tables of a database when it is told to, beside others who do.
async fn migrate<B: Back>(orders: &Orders) -> Result<(), Box<dyn Error>> {
    println!("READY");
    std::io::stdin().lock().read_line(&mut String::new())?;
    let pool = if orders.bare {
        sqlx::Pool::<B::DB>::connect(&orders.url).await?
    } else {
        B::pool_at(&orders.url, 4).await
    };
    asynccmd::migrate(&pool).await?;
    println!("MIGRATED");
    Ok(())
}

/// The command line.
struct Orders {
    url: String,
    dir: PathBuf,
    stall: Duration,
    grace: Duration,
    workers: usize,
    only: Vec<String>,
    open: Vec<String>,
    lose_claims: usize,
    migrate: bool,
    bare: bool,
}

impl Orders {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut orders = Self {
            url: args.next().ok_or("no database given")?,
            dir: args.next().ok_or("no folder given")?.into(),
            stall: Duration::from_secs(1),
            grace: Duration::from_secs(25),
            workers: 16,
            only: Vec::new(),
            open: Vec::new(),
            lose_claims: 0,
            migrate: false,
            bare: false,
        };
        while let Some(option) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{option} needs a value"));
            match option.as_str() {
                "--stall" => orders.stall = Duration::from_millis(value()?.parse()?),
                "--grace" => orders.grace = Duration::from_millis(value()?.parse()?),
                "--workers" => orders.workers = value()?.parse()?,
                "--only" => orders.only.push(value()?),
                "--open" => orders.open.push(value()?),
                "--lose-claims" => orders.lose_claims = value()?.parse()?,
                "--migrate" => orders.migrate = true,
                "--bare" => orders.bare = true,
                _ => return Err(format!("unknown option {option}").into()),
            }
        }
        Ok(orders)
    }
}
