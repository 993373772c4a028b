//! The quickstart under `kill -9`, again and again, on one database of each kind.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use asynccmd_tests::harness::{Back, OnMysql, OnPostgres, OnSqlite};
use asynccmd_tests::process::{PATIENCE, Process, Signal, until};
use tokio::process::Command;

/// How often it is killed in the long run, on every kind of database.
const KILLS_IF_LONG: usize = 20;

#[tokio::test]
async fn survives_kills_on_sqlite() {
    survives_kills::<OnSqlite>(20).await;
}

#[tokio::test]
async fn survives_kills_on_postgres() {
    survives_kills::<OnPostgres>(6).await;
}

#[tokio::test]
async fn survives_kills_on_mysql() {
    survives_kills::<OnMysql>(6).await;
}

/// Killed at random moments, then interrupted, and started again each time, it ends with nothing lost
/// and nothing doubled, and no command was taken for one that kills its process.
async fn survives_kills<B: Back>(kills: usize) {
    let long = std::env::var_os("ASYNCCMD_LONG").is_some();
    let kills = if long { KILLS_IF_LONG } else { kills };
    let given = std::env::var("ASYNCCMD_SEED").map(|seed| seed.parse().expect("a number"));
    let seed: u64 = given.unwrap_or_else(|_| fastrand::u64(..));
    println!("ASYNCCMD_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);

    let binary = build();
    let back = B::create().await;
    let dir = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = Command::new(&binary);
        command.arg("--database").arg(back.url()).arg("--dir").arg(dir.path());
        Process::start("the quickstart", command)
    };

    let (mut in_the_middle, mut known) = (0, vec![0]);
    for kill in 1..=kills {
        let mut quickstart = start();
        let instance = instance_of(&back, &mut quickstart, kill, &mut known).await;
        // Mostly into the intake; every fifth start lives long enough to recover what earlier ones
        // have left, and is killed amid that.
        let longest = if kill % 5 == 0 { 4500 } else { 300 };
        let moment = Instant::now() + Duration::from_millis(random.u64(0..=longest));
        until("rows of this start are RUNNING", true, PATIENCE, async || {
            running(&back, instance).await > 0 && Instant::now() >= moment
        })
        .await;
        assert!(!quickstart.has_ended(), "all work was done before kill {kill}");
        quickstart.kill().await;
        let held = running(&back, instance).await;
        println!("kill {kill}: {held} rows were RUNNING");
        in_the_middle += usize::from(held > 0);
    }
    let enough = in_the_middle * 4 >= kills * 3;
    assert!(enough, "rows were RUNNING at {in_the_middle} of {kills} kills only");

    // Ctrl-C is another thing: what runs comes to its end, and the rest goes back at once.
    let mut quickstart = start();
    let instance = instance_of(&back, &mut quickstart, kills + 1, &mut known).await;
    until("rows of this start are RUNNING", true, PATIENCE, async || {
        running(&back, instance).await > 0
    })
    .await;
    quickstart.signal(Signal::INT);
    assert_eq!(quickstart.ends(PATIENCE).await.code(), Some(130), "{:?}", quickstart.errors());
    assert_eq!(running(&back, instance).await, 0);

    let mut quickstart = start();
    let status = quickstart.ends(Duration::from_secs(180)).await;
    let (out, err) = (quickstart.lines().join("\n"), quickstart.errors().join("\n"));
    println!("{out}");
    assert!(status.success(), "{status}\n{out}\n{err}");
    assert!(out.contains(", 0 lost, 0 doubled"), "{out}");

    for none in [
        // Taken for commands that kill their process.
        "select count(*) from async_command c where c.status = 'DEAD' and 'crashed' = (
             select kind from async_command_failure f where f.command_id = c.id
             order by run_no desc limit 1)",
        "select count(*) from async_command where status in ('PENDING', 'RUNNING')",
        "select count(*) from async_command_claim",
        "select count(*) from async_command_instance",
    ] {
        assert_eq!(back.number(none).await, 0, "{none}");
    }
}

/// The instance that this start has registered as: one that is not `known`.
async fn instance_of<B: Back>(
    back: &B,
    quickstart: &mut Process,
    kill: usize,
    known: &mut Vec<i64>,
) -> i64 {
    let others = known.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let newest = "select coalesce(max(id), 0) from async_command_instance where id not in";
    let mut instance = 0;
    until("the quickstart has registered", true, PATIENCE, async || {
        assert!(!quickstart.has_ended(), "ended before kill {kill}: {:?}", quickstart.errors());
        instance = back.number(format!("{newest} ({others})")).await;
        instance != 0
    })
    .await;
    known.push(instance);
    instance
}

async fn running<B: Back>(back: &B, instance: i64) -> i64 {
    let held = "select count(*) from async_command where status = 'RUNNING' and claimed_by";
    back.number(format!("{held} = {instance}")).await
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
