//! The operators' file.

use std::fs;
use std::path::Path;

use asynccmd::AnyCommand;
use serde::Deserialize;

/// What a report found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Finding {
    Normal,
    Abnormal,
    Critical,
}

/// When this is found, these commands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    pub(crate) when: Finding,
    pub(crate) then: Vec<Box<dyn AnyCommand>>,
}

/// Reads a file of rules. What is wrong in it is named by its place: `file:line:column`.
pub(crate) fn load(file: &Path) -> Result<Vec<Rule>, String> {
    let text = fs::read_to_string(file)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    serde_saphyr::from_str(&text).map_err(|error| {
        let told = error.without_snippet().to_string();
        let Some(at) = error.location() else { return format!("{}: {told}", file.display()) };
        let (line, column) = (at.line(), at.column());
        // The place stands in front, where editors look for it.
        let told = told.trim_end_matches(&format!(" at line {line}, column {column}"));
        format!("{}:{line}:{column}: {told}", file.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("rules.yaml");
        fs::write(&file, text).unwrap();
        load(&file).unwrap_err()
    }

    #[test]
    fn the_shipped_rules_load() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/rules.yaml");
        let rules = load(&file).unwrap();
        let types: Vec<_> = rules[1].then.iter().map(|command| command.command_type()).collect();
        assert_eq!(types, ["pager.alert", "report.second_opinion", "ward.call"]);
    }

    #[test]
    fn an_unknown_type_is_refused_with_its_place_and_the_known_ones() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/rules-with-a-slip.yaml");
        let told = load(&file).unwrap_err();
        assert!(told.contains("rules-with-a-slip.yaml:7:7: "), "{told}");
        for known in ["`ward.cal`", "pager.alert", "report.second_opinion", "ward.call"] {
            assert!(told.contains(known), "{known} in {told}");
        }
    }

    #[test]
    fn a_payload_that_is_none_is_refused_with_its_place() {
        let told = refused(
            "- when: normal\n  then:\n    - type: ward.call\n      payload: { ward: 3b }\n",
        );
        assert!(told.contains("rules.yaml:4:") && told.contains("missing field `text`"), "{told}");
        let told = refused("- when: odd\n  then: []\n");
        assert!(
            told.contains("rules.yaml:1:9: ") && told.ends_with("abnormal, critical"),
            "{told}"
        );
    }
}
