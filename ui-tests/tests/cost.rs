//! What the attribute costs: the same functions once with it, and once with serde structs and a table of
//! handlers written by hand, in build time and in size of the binary, for each command.
//!
//! A command's share is the difference between a crate with many and one with few, so that what comes
//! once does not count. The time is that of the processors, all of a build's processes together: unlike
//! the time that passes, which is told beside it, it does not wait while other work has the machine. But a
//! machine's speed goes up and down, by more than what is looked for: so the styles take turns, each round
//! compares builds that were made within a minute, and the median of the rounds counts. Linux alone tells
//! the processors' time (`/proc/self/stat`); elsewhere it is the time that passes, and the machine has to
//! be quiet. Long: runs with `ASYNCCMD_LONG=1`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

const FEW: u32 = 20;
const MANY: u32 = 120;
/// Builds of each crate, and how many they become as long as a limit is not kept.
const ROUNDS: std::ops::RangeInclusive<usize> = 3..=9;

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
#[derive(Debug, Clone, Copy)]
struct Limit {
    millis: f64,
    bytes: f64,
}

impl Limit {
    /// Whether what a style costs more than by hand is within it.
    fn keeps(self, more: &Cost) -> bool {
        more.millis <= self.millis && more.bytes <= self.bytes
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
        let kept = |style: usize, more: &Cost| style == 0 || limits[style - 1].keeps(more);
        let rounds = bench.rounds(profile, |rounds| {
            (0..STYLES.len()).all(|style| kept(style, &more_than_by_hand(rounds, style)))
        });
        for (at, style) in STYLES.iter().enumerate() {
            let (cost, more) = (
                Cost::median(rounds.iter().map(|round| round[at])),
                more_than_by_hand(&rounds, at),
            );
            println!("{profile}: by {} {cost}; more than by hand: {more}", style.name);
            if !kept(at, &more) {
                over.push(format!("{} in {profile}", style.name));
            }
        }
        println!("{profile}: {} rounds; limits (milliseconds, bytes): {limits:?}", rounds.len());
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

/// What a style costs more than the first, by the median of the rounds.
fn more_than_by_hand(rounds: &[Round], style: usize) -> Cost {
    Cost::median(rounds.iter().map(|round| round[style].minus(&round[0])))
}

/// Each style's cost by builds of one time.
type Round = [Cost; STYLES.len()];

/// One command's share.
#[derive(Clone, Copy)]
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

    fn minus(&self, other: &Self) -> Self {
        Self {
            millis: self.millis - other.millis,
            passed: self.passed - other.passed,
            bytes: self.bytes - other.bytes,
        }
    }

    /// Each of its figures by itself.
    fn median(costs: impl Iterator<Item = Self> + Clone) -> Self {
        let middle = |figure: fn(&Self) -> f64| {
            let mut figures: Vec<_> = costs.clone().map(|cost| figure(&cost)).collect();
            figures.sort_by(f64::total_cmp);
            f64::midpoint(figures[(figures.len() - 1) / 2], figures[figures.len() / 2])
        };
        Self {
            millis: middle(|cost| cost.millis),
            passed: middle(|cost| cost.passed),
            bytes: middle(|cost| cost.bytes),
        }
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { millis, passed, bytes } = self;
        write!(f, "{millis:.1} ms ({passed:.1} ms passed) and {bytes:.0} bytes")
    }
}

/// A build of a crate alone, and the size of its binary.
#[derive(Clone, Copy)]
struct Built {
    used: Duration,
    passed: Duration,
    bytes: u64,
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

    /// What a command costs in every style, again and again until it is good or the rounds are over.
    fn rounds(&self, profile: &str, good: impl Fn(&[Round]) -> bool) -> Vec<Round> {
        let built = |style: &Style, commands| self.rebuild(profile, &style.package(commands));
        for style in &STYLES {
            for commands in [FEW, MANY] {
                self.build(profile, &style.package(commands));
            }
        }
        let mut rounds = Vec::new();
        while rounds.len() < *ROUNDS.end() && !(rounds.len() >= *ROUNDS.start() && good(&rounds)) {
            // Those that are compared follow each other at once.
            let few = STYLES.each_ref().map(|style| built(style, FEW));
            let many = STYLES.each_ref().map(|style| built(style, MANY));
            rounds.push(std::array::from_fn(|style| Cost::of_one(&few[style], &many[style])));
        }
        rounds
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
