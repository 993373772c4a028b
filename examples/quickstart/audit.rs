//! Counts what should be there, from the file, against what is there.
//!
//! The file is read a second time here, by a reader that shares nothing with `intake.rs`: neither the
//! CSV library nor the rules in the tables. So a mistake in one of them shows as a difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use asynccmd::Client;

use crate::Result;
use crate::club::Club;
use crate::handlers::VOID;
use crate::maildir::Maildir;
use crate::report;

/// What should be there once all is done.
pub(crate) struct Expected {
    members: BTreeSet<String>,
    unconfirmed: BTreeSet<String>,
}

impl Expected {
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let bytes =
            fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        Ok(Self::of(&bytes))
    }

    pub(crate) fn members(&self) -> u64 {
        self.members.len() as u64
    }

    fn of(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let mut expected = Self { members: BTreeSet::new(), unconfirmed: BTreeSet::new() };
        for record in records(bytes).skip(1) {
            let fields: Option<Vec<&str>> =
                record.iter().map(|field| std::str::from_utf8(field).ok()).collect();
            let Some([name, mail, _, confirmed]) = fields.as_deref() else { continue };
            let mail = mail.trim().to_lowercase();
            let Some((user, host)) = mail.split_once('@') else { continue };
            let address = !user.is_empty() && !host.is_empty() && !host.contains('@');
            let readable = !name.trim().is_empty() && matches!(*confirmed, "yes" | "no");
            // The first registration of an address counts, whatever its capitals.
            let valid = address && readable && !mail.contains(' ');
            if valid && expected.members.insert(mail.clone()) && *confirmed == "no" {
                expected.unconfirmed.insert(mail);
            }
        }
        expected
    }
}

/// Splits a CSV text into records of fields, byte by byte.
fn records(bytes: &[u8]) -> impl Iterator<Item = Vec<Vec<u8>>> {
    enum At {
        Start,
        Bare,
        Quoted,
        QuoteInQuoted,
    }
    let mut at = At::Start;
    let mut records = vec![vec![Vec::new()]];
    for &byte in bytes {
        let record = records.last_mut().expect("starts with one");
        let field = record.last_mut().expect("starts with one");
        at = match (at, byte) {
            (At::Start, b'"') => At::Quoted,
            (At::Quoted, b'"') => At::QuoteInQuoted,
            (At::QuoteInQuoted, b'"') => {
                field.push(b'"');
                At::Quoted
            }
            (At::Quoted, byte) => {
                field.push(byte);
                At::Quoted
            }
            (_, b',') => {
                record.push(Vec::new());
                At::Start
            }
            (_, b'\n' | b'\r') => {
                records.push(vec![Vec::new()]);
                At::Start
            }
            (_, byte) => {
                field.push(byte);
                At::Bare
            }
        };
    }
    // Empty lines, the second halves of `\r\n` among them, are no records.
    records
        .into_iter()
        .filter(|record| record.iter().any(|field| !field.is_empty()) || record.len() > 1)
}

/// How often each name is there.
type Counts = BTreeMap<String, u64>;

fn once(names: impl IntoIterator<Item = String>) -> Counts {
    names.into_iter().fold(Counts::new(), |mut counts, name| {
        *counts.entry(name).or_default() += 1;
        counts
    })
}

/// How many are missing, and how many are too many.
fn compare(expected: &Counts, found: &Counts) -> (u64, u64) {
    let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    names.into_iter().fold((0, 0), |(lost, doubled), name| {
        let expected = expected.get(name).copied().unwrap_or(0);
        let found = found.get(name).copied().unwrap_or(0);
        (lost + expected.saturating_sub(found), doubled + found.saturating_sub(expected))
    })
}

/// Prints expected against found. Says whether nothing is lost and nothing doubled.
pub(crate) async fn print(
    expected: &Expected,
    client: &Client,
    club: &Club,
    maildir: &Maildir,
) -> Result<bool> {
    let all = || expected.members.iter().cloned();
    let census = client.admin().census().await?;
    let commands = |types: &[&str], each: u64| -> Counts {
        types.iter().map(|name| ((*name).to_owned(), each)).collect()
    };
    let mut submitted = Counts::new();
    for count in census {
        *submitted.entry(count.command_type).or_default() += count.count;
    }
    let types = ["marketing.issue_coupon", "member.expire_unconfirmed", "member.send_welcome"];

    let lines = [
        ("members", once(all()), once(club.texts("select mail from member").await?)),
        ("commands", commands(&types, expected.members()), submitted),
        ("mails", once(all().filter(|mail| !mail.ends_with(VOID))), mails(maildir)?),
        (
            "dead letters",
            once(all().filter(|mail| mail.ends_with(VOID))),
            once(report::dead_letters(client).await?.into_iter().map(|dead| dead.biz_key)),
        ),
        ("coupons", once(all()), once(club.texts("select mail from coupon").await?)),
        (
            "expiries",
            once(expected.unconfirmed.iter().cloned()),
            once(club.texts("select mail from expiry").await?),
        ),
    ];

    println!("\n{:<14}{:>9}{:>9}{:>7}{:>9}", "audit", "expected", "found", "lost", "doubled");
    let (mut all_lost, mut all_doubled) = (0, 0);
    for (what, expected, found) in &lines {
        let (lost, doubled) = compare(expected, found);
        let sum = |counts: &Counts| counts.values().sum::<u64>();
        println!("{what:<14}{:>9}{:>9}{lost:>7}{doubled:>9}", sum(expected), sum(found));
        all_lost += lost;
        all_doubled += doubled;
    }
    let members = expected.members();
    println!("audit: {members} members, {all_lost} lost, {all_doubled} doubled");
    Ok(all_lost == 0 && all_doubled == 0)
}

/// The mails by recipient. One file is one mail.
fn mails(maildir: &Maildir) -> Result<Counts> {
    let mut recipients = Vec::new();
    for entry in fs::read_dir(maildir.new_mails())? {
        let text = fs::read_to_string(entry?.path())?;
        let to = text.lines().find_map(|line| line.strip_prefix("To: "));
        recipients.push(to.unwrap_or("nobody").to_owned());
    }
    Ok(once(recipients))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_reading_knows_quotes_breaks_and_blanks() {
        let text = "\u{feff}a,b\r\n\"x, \"\"y\"\"\nz\",\r\n\r\nbare \"q\" , 1\n,";
        let read: Vec<Vec<String>> = records(text.trim_start_matches('\u{feff}').as_bytes())
            .map(|record| record.into_iter().map(|f| String::from_utf8(f).unwrap()).collect())
            .collect();
        assert_eq!(
            read,
            [vec!["a", "b"], vec!["x, \"y\"\nz", ""], vec!["bare \"q\" ", " 1"], vec!["", ""]]
        );
    }

    #[test]
    fn members_are_those_with_an_address_of_their_own() {
        let expected = Expected::of(
            b"name,mail,city,confirmed\n\
              A,a@x.example,C,no\nA again, A@X.example ,C,yes\nB,,C,yes\nC,c at x,C,yes\nD,d@x\n\
              E,e@x.example,C,maybe\nF,f@x@y,C,no\nG\xFC,g@x.example,C,no\n,h@x.example,C,no\n\
              I,i@x.example,C,yes\n",
        );
        assert_eq!(Vec::from_iter(&expected.members), ["a@x.example", "i@x.example"]);
        assert_eq!(Vec::from_iter(&expected.unconfirmed), ["a@x.example"]);
    }

    #[test]
    fn losses_and_doubles_do_not_make_up_for_each_other() {
        let counts = |names: &[&str]| once(names.iter().map(|name| (*name).to_owned()));
        assert_eq!(compare(&counts(&["a", "b"]), &counts(&["a", "a", "c"])), (1, 2));
        assert_eq!(compare(&counts(&["a"]), &counts(&["a"])), (0, 0));
    }
}
