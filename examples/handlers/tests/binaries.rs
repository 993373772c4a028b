//! The two binaries: as these tests are built, and in the long suite (`ASYNCCMD_LONG=1`) as a release and
//! with fat LTO, which leaves out all that it can.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs both binaries, on a database of their own.
fn check(worker: &Path, forgotten: &Path) {
    let directory = tempfile::tempdir().unwrap();
    let run = |binary: &Path| -> Output {
        let file = directory.path().join("letters.db");
        let output = Command::new(binary).arg(file).output();
        output.unwrap_or_else(|error| panic!("{} cannot be started: {error}", binary.display()))
    };
    let output = run(forgotten);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{told}");
    for part in [
        "no command is registered",
        "the linker drops a crate that nothing names",
        "`use handlers as _;`",
    ] {
        assert!(told.contains(part), "{part:?} in {told}");
    }
    let output = run(worker);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "letters.send SUCCESS Some(\"\\\"letter 1 to Ada\\\"\")\nletters.file SUCCESS Some(\"\\\"filed for Grace\\\"\")\n"
    );
}

/// Builds both as a release with these settings, into a folder of its own beside the others' output.
fn build(name: &str, settings: &[(&str, &str)]) -> [PathBuf; 2] {
    // <target>/<profile>/deps/<test>
    let test = std::env::current_exe().unwrap();
    let target =
        test.ancestors().nth(3).expect("in a target directory").join("handlers").join(name);
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--release", "--bins", "--target-dir"])
        .arg(&target)
        .envs(settings.iter().copied())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    ["handlers-worker", "handlers-forgotten"].map(|name| {
        target.join("release").join(name).with_extension(std::env::consts::EXE_EXTENSION)
    })
}

#[test]
fn a_binary_runs_the_handlers_of_the_crates_it_names() {
    check(
        Path::new(env!("CARGO_BIN_EXE_handlers-worker")),
        Path::new(env!("CARGO_BIN_EXE_handlers-forgotten")),
    );
}

#[test]
fn a_release_does_so_too_and_with_fat_lto() {
    if std::env::var_os("ASYNCCMD_LONG").is_none() {
        // Not by `eprintln!`, which the harness would keep to itself.
        use std::io::Write as _;
        writeln!(std::io::stderr(), "releases are skipped: set ASYNCCMD_LONG=1 to build them")
            .expect("stderr is open");
        return;
    }
    for (name, settings) in [
        ("release", &[][..]),
        (
            "fat-lto",
            &[
                ("CARGO_PROFILE_RELEASE_LTO", "fat"),
                ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"),
                ("CARGO_PROFILE_RELEASE_STRIP", "symbols"),
            ],
        ),
    ] {
        let [worker, forgotten] = build(name, settings);
        check(&worker, &forgotten);
    }
}
