//! What the attribute costs: the same functions once with it, and once with serde structs and a table of
//! handlers written by hand, in build time and in size of the binary, for each command.
//!
//! A command's share is the difference between a crate with many and one with few, so that what comes
//! once does not count. Of several builds the fastest counts, which a loaded machine disturbs least; the
//! figures are still those of a quiet one alone. Long: runs with `ASYNCCMD_LONG=1`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

const FEW: u32 = 20;
const MANY: u32 = 220;
const ROUNDS: u32 = 5;

/// What a command may cost more by the attribute than by hand: milliseconds of build and bytes of binary, by
/// profile. Of a binary without optimization the bytes are told, and not limited: nobody ships it.
const LIMITS: [(&str, f64, f64); 2] = [("dev", 10.0, f64::INFINITY), ("release", 5.0, 1024.0)];

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
    for (profile, most_millis, most_bytes) in LIMITS {
        let [hand, attribute] =
            ["hand", "attribute"].map(|style| bench.cost_of_one(profile, style));
        let (time, size) = (attribute.millis - hand.millis, attribute.bytes - hand.bytes);
        println!(
            "{profile}: a command costs {:.1} ms and {:.0} bytes by hand, {:.1} ms and {:.0} bytes by the attribute: \
             {time:+.1} ms (limit {most_millis}), {size:+.0} bytes (limit {most_bytes})",
            hand.millis, hand.bytes, attribute.millis, attribute.bytes,
        );
        if time > most_millis || size > most_bytes {
            over.push(profile);
        }
    }
    assert!(over.is_empty(), "the attribute costs too much in {over:?}");
}

/// One command's share.
struct Cost {
    millis: f64,
    bytes: f64,
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
        let names: Vec<_> = ["hand", "attribute"]
            .iter()
            .flat_map(|style| [FEW, MANY].map(|commands| format!("{style}{commands}")))
            .collect();
        let manifest = format!(
            "[workspace]\nresolver = \"3\"\nmembers = {names:?}\n\n\
             [profile.dev]\nstrip = true\n\n[profile.release]\nstrip = true\n"
        );
        fs::write(root.join("Cargo.toml"), manifest).expect("the workspace's manifest");
        // The versions that everything else is built with.
        fs::copy(repository.join("Cargo.lock"), root.join("Cargo.lock")).expect("the lock file");
        for (style, source) in [("hand", by_hand as fn(u32) -> String), ("attribute", by_attribute)]
        {
            for commands in [FEW, MANY] {
                let package = root.join(format!("{style}{commands}"));
                fs::create_dir_all(package.join("src")).expect("a folder for the crate");
                let manifest = format!(
                    "[package]\nname = \"{style}{commands}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
                     [dependencies]\nasynccmd = {{ path = {:?} }}\n\
                     serde = {{ version = \"1\", features = [\"derive\"] }}\nserde_json = \"1\"\n",
                    repository.join("asynccmd")
                );
                fs::write(package.join("Cargo.toml"), manifest).expect("the crate's manifest");
                fs::write(package.join("src/main.rs"), source(commands)).expect("its source");
            }
        }
        Self { root }
    }

    fn cost_of_one(&self, profile: &str, style: &str) -> Cost {
        let [few, many] = [FEW, MANY].map(|commands| self.cost_of(profile, style, commands));
        let commands = f64::from(MANY - FEW);
        Cost {
            millis: (many.0.as_secs_f64() - few.0.as_secs_f64()) * 1000.0 / commands,
            bytes: (many.1 as f64 - few.1 as f64) / commands,
        }
    }

    /// The fastest build of a crate alone, and the size of its binary.
    fn cost_of(&self, profile: &str, style: &str, commands: u32) -> (Duration, u64) {
        let package = format!("{style}{commands}");
        let source = self.root.join(&package).join("src/main.rs");
        self.build(profile, &package);
        let fastest = (0..ROUNDS)
            .map(|_| {
                let text = fs::read(&source).expect("the source is there");
                fs::write(&source, text).expect("it can be touched");
                let started = Instant::now();
                self.build(profile, &package);
                started.elapsed()
            })
            .min()
            .expect("there are rounds");
        let folder = if profile == "dev" { "debug" } else { profile };
        let binary = self.root.join("target").join(folder).join(&package);
        let status = Command::new(&binary).status().expect("the binary runs");
        assert!(status.success(), "{package} has not the commands that it should");
        (fastest, fs::metadata(&binary).expect("the binary is there").len())
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

fn by_attribute(commands: u32) -> String {
    let mut source = String::new();
    for number in 0..commands {
        source += &numbered("#[asynccmd::command(type = \"command.NUMBER\")]\n", number);
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
