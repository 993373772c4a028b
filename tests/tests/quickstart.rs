//! The quickstart under `kill -9`, again and again, on one database.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use asynccmd_tests::harness::OnSqlite;
use asynccmd_tests::process::{PATIENCE, Process, Signal, until};
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;
use tokio::process::Command;

/// How often it is killed.
const KILLS: usize = 20;
/// How often at least it must have held rows when it was.
const IN_THE_MIDDLE: usize = 15;

/// Killed twenty times at random moments, then interrupted, and started again each time, it ends with
/// nothing lost and nothing doubled, and no command was taken for one that kills its process.
#[tokio::test]
async fn survives_twenty_kills() {
    let given = std::env::var("ASYNCCMD_SEED").map(|seed| seed.parse().expect("a number"));
    let seed: u64 = given.unwrap_or_else(|_| fastrand::u64(..));
    println!("ASYNCCMD_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);

    let binary = build();
    let dir = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = Command::new(&binary);
        command.arg("--dir").arg(dir.path());
        Process::start("the quickstart", command)
    };
    let pool = SqlitePoolOptions::new()
        .connect_lazy_with(OnSqlite::options(&dir.path().join("quickstart.db")).read_only(true));

    let (mut in_the_middle, mut known) = (0, HashSet::new());
    for kill in 1..=KILLS {
        let mut quickstart = start();
        let instance = instance_of(&pool, &mut quickstart, kill, &mut known).await;
        // Mostly into the intake; every fifth start lives long enough to recover what earlier ones
        // have left, and is killed amid that.
        let longest = if kill % 5 == 0 { 4500 } else { 300 };
        let moment = Instant::now() + Duration::from_millis(random.u64(0..=longest));
        until("rows of this start are RUNNING", true, PATIENCE, async || {
            running(&pool, instance).await > 0 && Instant::now() >= moment
        })
        .await;
        assert!(!quickstart.has_ended(), "all work was done before kill {kill}");
        quickstart.kill().await;
        let held = running(&pool, instance).await;
        println!("kill {kill}: {held} rows were RUNNING");
        in_the_middle += usize::from(held > 0);
    }
    assert!(in_the_middle >= IN_THE_MIDDLE, "rows were RUNNING at {in_the_middle} kills only");

    // Ctrl-C is another thing: what runs comes to its end, and the rest goes back at once.
    let mut quickstart = start();
    let instance = instance_of(&pool, &mut quickstart, KILLS + 1, &mut known).await;
    until("rows of this start are RUNNING", true, PATIENCE, async || {
        running(&pool, instance).await > 0
    })
    .await;
    quickstart.signal(Signal::INT);
    assert_eq!(quickstart.ends(PATIENCE).await.code(), Some(130), "{:?}", quickstart.errors());
    assert_eq!(running(&pool, instance).await, 0);

    let mut quickstart = start();
    let status = quickstart.ends(Duration::from_secs(180)).await;
    let (out, err) = (quickstart.lines().join("\n"), quickstart.errors().join("\n"));
    println!("{out}");
    assert!(status.success(), "{status}\n{out}\n{err}");
    assert!(out.contains(", 0 lost, 0 doubled"), "{out}");

    let crashed: Vec<i64> = sqlx::query_scalar(
        "select c.id from async_command c where c.status = 'DEAD' and 'crashed' = (
             select kind from async_command_failure f where f.command_id = c.id
             order by run_no desc limit 1)",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert!(crashed.is_empty(), "taken for commands that kill their process: {crashed:?}");
    for left in [
        "select count(*) from async_command where status in ('PENDING', 'RUNNING')",
        "select count(*) from async_command_claim",
        "select count(*) from async_command_instance",
    ] {
        let count: i64 = sqlx::query_scalar(left).fetch_one(&pool).await.unwrap();
        assert_eq!(count, 0, "{left}");
    }
}

/// The instance that this start has registered as: one that is not `known`.
async fn instance_of(
    pool: &SqlitePool,
    quickstart: &mut Process,
    kill: usize,
    known: &mut HashSet<i64>,
) -> i64 {
    let mut instance = None;
    until("the quickstart has registered", true, PATIENCE, async || {
        assert!(!quickstart.has_ended(), "ended before kill {kill}: {:?}", quickstart.errors());
        // Before its first start there is no file, or no table, and then nothing to be found.
        let all: Vec<i64> = sqlx::query_scalar("select id from async_command_instance")
            .fetch_all(pool)
            .await
            .unwrap_or_default();
        instance = all.into_iter().find(|id| known.insert(*id));
        instance.is_some()
    })
    .await;
    instance.expect("found")
}

async fn running(pool: &SqlitePool, instance: i64) -> i64 {
    sqlx::query_scalar(
        "select count(*) from async_command where status = 'RUNNING' and claimed_by = ?",
    )
    .bind(instance)
    .fetch_one(pool)
    .await
    .unwrap()
}

/// Builds the example as this test was built, and says where it is. Fresh, this takes no time; a stale
/// one would be a test of yesterday's.
fn build() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // <target>/<profile>/deps/<test>
    let [_, _, profile, target] = &test.ancestors().take(4).collect::<Vec<_>>()[..] else {
        panic!("not in a target directory: {}", test.display());
    };
    let name = match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let built = std::process::Command::new(env!("CARGO"))
        .args(["build", "--locked", "--workspace", "--example", "quickstart"])
        .args(["--profile", name, "--target-dir"])
        .arg(target)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    profile.join("examples").join("quickstart").with_extension(std::env::consts::EXE_EXTENSION)
}
