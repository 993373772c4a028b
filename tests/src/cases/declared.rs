//! Commands that are declared apart from their handlers.

use std::time::Duration;

use asynccmd::{
    AnyCommand, Client, Command, CommandError, Context, Level, Mode, Poll, Problem, Registry,
    StartError, Status, SubmitExt as _, command, testing,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::harness::{Back, Log, row};
use crate::setting::Setting;

/// What a publisher knows.
#[derive(Debug, PartialEq, Serialize, Deserialize, Command)]
#[command(
    type = "declared.note",
    biz_key = "note:{text}",
    unique,
    max_retry = 2,
    aliases("declared.old_note")
)]
struct Note {
    text: String,
}

#[command(handles(Note), mode = "immediate", backoff = "fixed(0s)")]
async fn write_down(
    #[payload] note: Note,
    #[state] log: Log,
    ctx: &Context,
) -> Result<usize, CommandError> {
    log.add(ctx, &note.text);
    if note.text == "bad" { Err("no".into()) } else { Ok(note.text.len()) }
}

mod again {
    use super::{CommandError, Context, Log, Note, command};

    #[command(handles(Note))]
    pub(super) fn write_again(
        #[payload] note: Note,
        #[state] log: Log,
        ctx: &Context,
    ) -> Result<(), CommandError> {
        log.add(ctx, &note.text);
        Ok(())
    }
}

/// The note's next shape, with what it takes to read the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Command)]
#[command(type = "declared.note", version = 2, upgrade(longer), portable)]
struct LongNote {
    lines: Vec<String>,
}

fn longer(version: u32, payload: Value) -> Result<Value, String> {
    assert_eq!(version, 1);
    Ok(json!({ "lines": [payload["text"]] }))
}

#[command(handles(LongNote), mode = "async_pool")]
async fn write_lines(
    #[payload] note: LongNote,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    log.add(ctx, &note.lines.join("/"));
    Ok(())
}

#[command(type = "declared.other", mode = "async_pool")]
async fn other() -> Result<(), CommandError> {
    Ok(())
}

fn note(text: &str) -> Note {
    Note { text: text.to_owned() }
}

/// A service without the handler writes what the declaration says, starts, and leaves the row to the one
/// that has it.
pub async fn a_publisher_needs_no_handler_and_misses_none<B: Back>(back: B) {
    let publisher = Setting::start(&back, Registry::builder().add::<Other>().build()).await;
    let sent = submit_note(&publisher.client(), note("a")).priority(Level::High).await.unwrap();
    let again = note("a").submit(&publisher.client()).await.unwrap();
    assert!(sent.created && !again.created, "the declaration is unique");
    submit_other(&publisher.client()).await.unwrap();
    let inline = testing::run_inline::<NoteHandler>(note("four")).state(Log::default()).await;
    assert_eq!(inline.output::<usize>(), 4);
    publisher.drain().await;
    let stored = row(&publisher.client(), sent.id()).await;
    assert_eq!((stored.status, stored.biz_key.as_str()), (Status::Pending, "note:a"));
    assert_eq!((stored.command_type.as_str(), stored.max_retry), ("declared.note", 2));
    assert_eq!(testing::submitted::<Note>(back.database()).await[0].payload, note("a"));

    let service = Setting::start(&back, Registry::builder().add::<NoteHandler>().build()).await;
    service.drain().await;
    assert_eq!(service.status(sent.id()).await, Status::Success);
    assert_eq!(service.log.texts(), ["a"]);
    service.end().await;
    publisher.end().await;
}

/// It starts after its commit in every mode of the handler, which no submit knows: no poll comes within
/// the hour.
pub async fn a_declared_command_starts_after_its_commit<B: Back>(back: B) {
    for (registry, mode) in [
        (Registry::builder().add::<NoteHandler>().build(), Mode::Immediate),
        (Registry::builder().add::<again::NoteHandler>().build(), Mode::Scheduled),
    ] {
        assert_eq!(registry.specs()[0].mode, mode);
        let hour = Poll::fixed_delay(Duration::from_secs(3600));
        let at = Setting::start_with(&back, registry, |builder| builder.poll(hour)).await;
        for count in 1..=3 {
            let mut tx = at.client().begin::<B::DB>().await.unwrap();
            submit_note(&mut tx, note("now")).await.unwrap();
            tx.commit().await.unwrap();
            at.log.until(count).await;
            at.drain().await;
        }
        at.end().await;
    }
}

/// How often it may fail stands with the declaration, how long it waits with the handler.
pub async fn a_declared_commands_retries_come_from_both_sides<B: Back>(back: B) {
    let at = Setting::start(&back, Registry::builder().add::<NoteHandler>().build()).await;
    let bad = submit_note(&at.client(), note("bad")).await.unwrap().id();
    at.drain().await;
    assert_eq!(at.status(bad).await, Status::Dead);
    assert_eq!(at.log.texts(), ["bad", "bad"]);
    at.end().await;
}

/// `require` makes a missing handler an error, and a second handler is one: with both places.
pub async fn require_and_a_second_handler_are_said_at_the_start<B: Back>(back: B) {
    let refused = async |registry, required: bool| {
        let builder = back.runtime(registry).state(Log::default());
        let builder = if required { builder.require::<Note>() } else { builder };
        match builder.start().await.expect_err("this cannot start") {
            StartError::Registry(error) => (error.problems.clone(), error.to_string()),
            error => panic!("{error}"),
        }
    };
    let (found, text) = refused(Registry::builder().add::<Other>().build(), true).await;
    assert!(matches!(found[..], [Problem::NotLinked { .. }]), "{text}");
    assert!(text.contains("`declared.note`"), "{text}");

    let twice = Registry::builder().add::<NoteHandler>().add::<again::NoteHandler>().build();
    let (found, text) = refused(twice, true).await;
    // By its name and by its alias.
    assert_eq!(found.len(), 2, "{text}");
    let Problem::Duplicate { command_type, places, same_place: false } = &found[0] else {
        panic!("{text}")
    };
    assert_eq!(command_type, "declared.note");
    assert!(places.iter().all(|place| place.contains("declared.rs:") && text.contains(place)));
    assert_ne!(places[0], places[1]);
}

/// Version, upgrade and boxes belong to the payload, and so to the declaration.
pub async fn a_declaration_outlives_its_older_rows<B: Back>(back: B) {
    let publisher = Client::new(back.database());
    submit_note(&publisher, note("old")).await.unwrap();
    let lines = LongNote { lines: vec!["new".into(), "er".into()] };
    submit_long_note(&publisher, lines.clone()).await.unwrap();
    let text = serde_json::to_string(&(Box::new(lines.clone()) as Box<dyn AnyCommand>)).unwrap();
    let boxed: Box<dyn AnyCommand> = serde_json::from_str(&text).unwrap();
    assert_eq!(boxed.downcast_ref::<LongNote>(), Some(&lines));
    publisher.submit_boxed(&publisher, [boxed]).await.unwrap();
    let rows = testing::submitted::<LongNote>(back.database()).await;
    assert_eq!(rows[0].payload, LongNote { lines: vec!["old".into()] });

    let at = Setting::start(&back, Registry::builder().add::<LongNoteHandler>().build()).await;
    at.drain().await;
    let mut texts = at.log.texts();
    texts.sort();
    assert_eq!(texts, ["new/er", "new/er", "old"]);
    at.end().await;
}
