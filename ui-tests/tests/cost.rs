//! What the attribute costs: the same functions once with it, and once with serde structs and a table of
//! handlers written by hand, in build time and in size of the binary, for each command.
//!
//! A command's share is the difference between a crate with many and one with few, so that what comes
//! once does not count. The time is that of the processors, all of a build's processes together: unlike
//! the time that passes, which is told beside it, it does not wait while other work has the machine. Of
//! several builds the cheapest counts, and the styles take turns, so that what still disturbs one disturbs
//! all; what seems too much is measured again, because a disturbance can only add. Linux alone tells the
//! processors' time (`/proc/self/stat`); elsewhere it is the time that passes, and the machine has to be
//! quiet. Long: runs with `ASYNCCMD_LONG=1`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

const FEW: u32 = 20;
const MANY: u32 = 120;
/// Builds of each crate, and how many they become as long as a limit is not kept.
const ROUNDS: std::ops::RangeInclusive<u32> = 2..=6;

const STYLES: [Style; 3] = [
    Style { name: "hand", source: by_hand, portable: false },
    Style { name: "attribute", source: |commands| by_attribute(commands, ""), portable: false },
    Style {
        name: "portable",
        source: |commands| by_attribute(commands, ", portable"),
        portable: true,
    },
];

/// What a command may cost more than by hand, by profile, for every style behind the first. Of a binary
/// without optimization the bytes are told, and not limited: nobody ships it. `portable` is dear, as its
/// documentation says; its limits are there to notice when it becomes dearer.
const LIMITS: [(&str, [Limit; STYLES.len() - 1]); 2] = [
    ("dev", [Limit { millis: 10.0, bytes: NO_LIMIT }, Limit { millis: 100.0, bytes: NO_LIMIT }]),
    (
        "release",
        [Limit { millis: 5.0, bytes: 1024.0 }, Limit { millis: 250.0, bytes: 18.0 * 1024.0 }],
    ),
];
const NO_LIMIT: f64 = f64::INFINITY;

/// Milliseconds of build and bytes of binary.
#[derive(Clone, Copy)]
struct Limit {
    millis: f64,
    bytes: f64,
}

impl Limit {
    fn keeps(self, cost: &Cost, hand: &Cost) -> bool {
        cost.millis - hand.millis <= self.millis && cost.bytes - hand.bytes <= self.bytes
    }
}

#[test]
fn the_attribute_costs_little_more_than_a_table_by_hand() {
    if env::var_os("ASYNCCMD_LONG").is_none() {
        // Not by `eprintln!`, which the harness would keep to itself.
        writeln!(std::io::stderr(), "the cost is not measured: set ASYNCCMD_LONG=1")
            .expect("stderr is open");
        return;
    }
    let bench = Bench::new();
    let mut over = Vec::new();
    for (profile, limits) in LIMITS {
        let [hand, styles @ ..] = bench.costs_of_one(profile, |[hand, styles @ ..]| {
            styles.iter().zip(limits).all(|(style, limit)| limit.keeps(style, hand))
        });
        println!("{profile}: by hand a command costs {hand}");
        for ((style, cost), limit) in STYLES[1..].iter().zip(&styles).zip(limits) {
            let (time, size) = (cost.millis - hand.millis, cost.bytes - hand.bytes);
            let Limit { millis, bytes } = limit;
            println!(
                "{profile}: by {} {cost}: {time:+.1} ms (limit {millis}), {size:+.0} bytes (limit {bytes})",
                style.name,
            );
            if !limit.keeps(cost, &hand) {
                over.push(format!("{} in {profile}", style.name));
            }
        }
    }
    assert!(over.is_empty(), "the attribute costs too much: {}", over.join(", "));
}

/// A way to write commands.
struct Style {
    name: &'static str,
    source: fn(u32) -> String,
    portable: bool,
}

impl Style {
    fn package(&self, commands: u32) -> String {
        format!("{}{commands}", self.name)
    }
}

/// One command's share.
struct Cost {
    millis: f64,
    /// Of the time that passed; told, and not limited.
    passed: f64,
    bytes: f64,
}

impl Cost {
    fn of_one(few: &Built, many: &Built) -> Self {
        let commands = f64::from(MANY - FEW);
        let millis = |few: Duration, many: Duration| {
            (many.as_secs_f64() - few.as_secs_f64()) * 1000.0 / commands
        };
        Self {
            millis: millis(few.used, many.used),
            passed: millis(few.passed, many.passed),
            bytes: (many.bytes as f64 - few.bytes as f64) / commands,
        }
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { millis, passed, bytes } = self;
        write!(f, "{millis:.1} ms ({passed:.1} ms passed) and {bytes:.0} bytes")
    }
}

/// The cheapest builds of a crate alone, and the size of its binary.
#[derive(Clone, Copy)]
struct Built {
    used: Duration,
    passed: Duration,
    bytes: u64,
}

impl Built {
    const DEAREST: Self = Self { used: Duration::MAX, passed: Duration::MAX, bytes: u64::MAX };

    fn cheaper(self, other: Self) -> Self {
        Self {
            used: self.used.min(other.used),
            passed: self.passed.min(other.passed),
            bytes: self.bytes.min(other.bytes),
        }
    }
}

/// A workspace with a crate for each style and number of commands.
struct Bench {
    root: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cost");
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        fs::create_dir_all(&root).expect("a folder for the crates");
        let names: Vec<_> = STYLES
            .iter()
            .flat_map(|style| [FEW, MANY].map(|commands| style.package(commands)))
            .collect();
        let manifest = format!(
            "[workspace]\nresolver = \"3\"\nmembers = {names:?}\n\n\
             [profile.dev]\nstrip = true\n\n[profile.release]\nstrip = true\n"
        );
        fs::write(root.join("Cargo.toml"), manifest).expect("the workspace's manifest");
        // The versions that everything else is built with.
        fs::copy(repository.join("Cargo.lock"), root.join("Cargo.lock")).expect("the lock file");
        for style in STYLES {
            let features: &[&str] = if style.portable { &["portable"] } else { &[] };
            for commands in [FEW, MANY] {
                let name = style.package(commands);
                let package = root.join(&name);
                fs::create_dir_all(package.join("src")).expect("a folder for the crate");
                let manifest = format!(
                    "[package]\nname = {name:?}\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
                     [dependencies]\nasynccmd = {{ path = {:?}, features = {features:?} }}\n\
                     serde = {{ version = \"1\", features = [\"derive\"] }}\nserde_json = \"1\"\n",
                    repository.join("asynccmd")
                );
                fs::write(package.join("Cargo.toml"), manifest).expect("the crate's manifest");
                fs::write(package.join("src/main.rs"), (style.source)(commands))
                    .expect("its source");
            }
        }
        Self { root }
    }

    /// One command's share in every style, measured until it is good or the rounds are over.
    fn costs_of_one(
        &self,
        profile: &str,
        good: impl Fn(&[Cost; STYLES.len()]) -> bool,
    ) -> [Cost; STYLES.len()] {
        let crates = STYLES.each_ref().map(|style| [FEW, MANY].map(|count| style.package(count)));
        for package in crates.as_flattened() {
            self.build(profile, package);
        }
        let mut cheapest = crates.each_ref().map(|pair| pair.each_ref().map(|_| Built::DEAREST));
        for round in 1.. {
            for (packages, bests) in crates.iter().zip(&mut cheapest) {
                for (package, best) in packages.iter().zip(bests) {
                    *best = best.cheaper(self.rebuild(profile, package));
                }
            }
            let costs = cheapest.each_ref().map(|[few, many]| Cost::of_one(few, many));
            if round == *ROUNDS.end() || (round >= *ROUNDS.start() && good(&costs)) {
                return costs;
            }
        }
        unreachable!("the rounds end")
    }

    /// Builds a crate whose dependencies are built, and asks its binary.
    fn rebuild(&self, profile: &str, package: &str) -> Built {
        let source = self.root.join(package).join("src/main.rs");
        let text = fs::read(&source).expect("the source is there");
        fs::write(&source, text).expect("it can be touched");
        let (before, started) = (processor_time(), Instant::now());
        self.build(profile, package);
        let passed = started.elapsed();
        let used = match (before, processor_time()) {
            (Some(before), Some(after)) => after - before,
            _ => passed,
        };
        let folder = if profile == "dev" { "debug" } else { profile };
        let binary = self.root.join("target").join(folder).join(package);
        let status = Command::new(&binary).status().expect("the binary runs");
        assert!(status.success(), "{package} has not the commands that it should");
        Built { used, passed, bytes: fs::metadata(&binary).expect("the binary is there").len() }
    }

    fn build(&self, profile: &str, package: &str) {
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--profile", profile, "--package", package])
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", self.root.join("target"))
            // What has not changed would cost nothing.
            .env("CARGO_INCREMENTAL", "0")
            .status()
            .expect("cargo runs");
        assert!(status.success(), "{package} does not build");
    }
}

/// What the processes that this one has waited for, and those that they have, took of the processors
/// until now.
fn processor_time() -> Option<Duration> {
    // Clock ticks, of which the interface has a hundred a second.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name in parentheses, with whatever it has in it; the 16th is user time of
    // children, the 17th their system time.
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(13);
    let (user, system): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(TICK * (user + system))
}

const FUNCTION: &str =
    "async fn command_NUMBER(id: i64, name: String, amount: u32) -> Result<i64, String> {
    if name.is_empty() {
        return Err(\"no name\".to_owned());
    }
    Ok(id + i64::from(amount))
}
";

fn numbered(template: &str, number: u32) -> String {
    template.replace("NUMBER", &number.to_string())
}

fn by_attribute(commands: u32, options: &str) -> String {
    let mut source = String::new();
    for number in 0..commands {
        let attribute = format!("#[asynccmd::command(type = \"command.{number}\"{options})]\n");
        source += &attribute;
        source += &numbered(FUNCTION, number);
    }
    let main = "fn main() {
    assert_eq!(std::hint::black_box(asynccmd::Registry::collect()).specs().len(), COUNT);
}
";
    source + &main.replace("COUNT", &commands.to_string())
}

fn by_hand(commands: u32) -> String {
    let mut source = String::from(
        "use std::pin::Pin;

type End = Result<String, String>;
type Handler = fn(&str) -> serde_json::Result<Pin<Box<dyn Future<Output = End> + Send>>>;

fn end(returned: Result<i64, String>) -> End {
    returned.map(|output| serde_json::to_string(&output).unwrap_or_default())
}
",
    );
    let mut table = String::new();
    for number in 0..commands {
        source += &numbered(FUNCTION, number);
        source += &numbered(
            "#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct CommandNUMBER { id: i64, name: String, amount: u32 }

fn handle_NUMBER(payload: &str) -> serde_json::Result<Pin<Box<dyn Future<Output = End> + Send>>> {
    let CommandNUMBER { id, name, amount } = serde_json::from_str(payload)?;
    Ok(Box::pin(async move { end(command_NUMBER(id, name, amount).await) }))
}
",
            number,
        );
        writeln!(table, "    (\"command.{number}\", handle_{number}),").expect("a string grows");
    }
    let main = "fn main() {
    assert_eq!(std::hint::black_box(TABLE).len(), COUNT);
    std::hint::black_box(asynccmd::Registry::collect());
}
";
    source
        + &format!("static TABLE: &[(&str, Handler)] = &[\n{table}];\n")
        + &main.replace("COUNT", &commands.to_string())
}
