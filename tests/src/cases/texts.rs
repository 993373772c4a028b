//! Texts of every width, and at the ends of their columns, come back as they were.

use std::time::Duration;

use asynccmd::{
    AdminError, Client, CommandError, Context, FailureKind, Filter, Outcome, Registry, Status,
    SubmitError, Unique, command,
};

use crate::gate::Gate;
use crate::harness::{Back, Log, row, until_row};
use crate::setting::Setting;

/// Four bytes of UTF-8, two units of UTF-16, of one and of several characters.
const EMOJI: &str = "💌";
const WIDE: &str = "𝔸👩‍👩‍👧🏳️‍🌈𠜎";

#[command(type = "texts.echo", mode = "async_pool", biz_key = "{text}")]
async fn echo(text: String, #[state] gate: Gate, ctx: &Context) -> Result<String, CommandError> {
    ctx.progress(0.5, text.clone());
    gate.pass().await;
    Ok(text)
}

#[command(type = "texts.blob", mode = "async_pool")]
async fn blob(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

#[command(type = "texts.fails", mode = "async_pool", max_retry = 1)]
async fn fails(text: String, cancels: bool) -> Result<Outcome<()>, CommandError> {
    if cancels { Err(CommandError::cancel(text)) } else { Err(text.into()) }
}

fn registry() -> Registry {
    Registry::builder().add::<Echo>().add::<Blob>().add::<Fails>().build()
}

/// Of exactly so many characters.
fn repeated(text: &str, characters: usize) -> String {
    text.chars().cycle().take(characters).collect()
}

/// Every column for a text takes the widest characters, up to its limit in characters, and none more.
pub async fn every_column_takes_the_widest_characters<B: Back>(back: B) {
    let name = repeated(EMOJI, 128);
    let at = Setting::start_with(&back, registry(), |builder| builder.name(&*name)).await;
    let client = at.client();
    let overhead = serde_json::json!({ "m": "" }).to_string().len();
    let (key, owner) = (repeated(WIDE, 128), repeated(WIDE, 64));
    let metadata = repeated(WIDE, 16_384 - overhead);
    let sent = submit_echo(&client, key.clone())
        .unique(Unique::UntilFinished)
        .owner(&owner)
        .shard_key(&key)
        .metadata("m", &metadata)
        .await
        .unwrap();
    let again = submit_echo(&client, key.clone()).unique(Unique::UntilFinished).await.unwrap();
    assert_eq!((again.id, again.created), (sent.id, false), "found by its key");
    until_row(&client, sent.id(), |row| row.progress.is_some()).await;
    at.gate.open(1);
    let row = until_row(&client, sent.id(), |row| row.status == Status::Success).await;
    let json = serde_json::to_string(&key).unwrap();
    assert_eq!(row.payload, format!("{{\"text\":{json}}}"));
    assert_eq!(
        (&row.biz_key, row.owner.as_ref(), row.result.as_ref()),
        (&key, Some(&owner), Some(&json))
    );
    assert_eq!(row.progress, Some(format!("{{\"fraction\":0.5,\"message\":{json}}}")));
    assert_eq!(row.metadata, Some(serde_json::json!({ "m": metadata }).to_string()));
    let found = client.admin().list(Filter::new().biz_key(&key)).await.unwrap();
    assert_eq!(found.len(), 1);
    let named = format!(
        "select count(*) from async_command_instance where name = '{name}' and id = {}",
        at.runtime.instance()
    );
    assert_eq!(back.number(named).await, 1);

    for refused in [
        submit_echo(&client, repeated(WIDE, 129)).await,
        submit_echo(&client, String::new()).owner(repeated(WIDE, 65)).await,
        submit_echo(&client, String::new()).metadata("m", format!("{metadata}x")).await,
    ] {
        assert!(matches!(refused, Err(SubmitError::TooLong { .. })), "{refused:?}");
    }
    at.end().await;
}

/// Five megabytes of wide characters, where the limit is raised; in one row and in a batch.
pub async fn a_payload_of_five_megabytes_comes_back_as_it_was<B: Back>(back: B) {
    const BYTES: usize = 5 << 20;
    let text = WIDE.repeat(BYTES / WIDE.len());
    let at =
        Setting::start_with(&back, registry(), |builder| builder.max_payload(BYTES + 100)).await;
    let refused = submit_blob(&Client::new(back.database()), text.clone()).await.unwrap_err();
    assert!(matches!(refused, SubmitError::PayloadTooLarge { .. }), "{refused}");
    let client = at.client();
    let one = submit_blob(&client, text.clone()).await.unwrap().id();
    let batch = ["short", &text, "last"].map(|text| Blob { text: text.into() });
    client.submit_all::<Blob>(&client, batch).await.unwrap();
    at.drain().await;
    let mut told = at.log.texts();
    told.sort_by_key(String::len);
    assert_eq!(told[..2], ["last", "short"]);
    assert!(told.len() == 4 && told[2..].iter().all(|told| *told == text), "not as submitted");
    let stored = row(&client, one).await.payload;
    assert!(stored == serde_json::json!({ "text": text }).to_string(), "not byte for byte");
    at.end().await;
}

/// An error is cut at 480 characters, wherever that is in its bytes, and kept in full beside it.
pub async fn an_error_is_cut_between_characters_at_every_offset<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    // Characters of one to four bytes, so that every offset around the cut is one within a character.
    let texts = ["x", "ä", "€", EMOJI].iter().flat_map(|unit| {
        (0..4).flat_map(move |before| {
            [476, 479, 480, 481, 484, 505, 1000]
                .map(|characters| "x".repeat(before) + &repeated(unit, characters - before))
        })
    });
    let texts: Vec<String> = texts.collect();
    let commands = texts.iter().map(|text| Fails { text: text.clone(), cancels: false });
    let sent = client.submit_all::<Fails>(&client, commands).await.unwrap();
    at.drain().await;
    for (sent, text) in sent.iter().zip(&texts) {
        let (kind, error) = at.death(sent.id()).await;
        assert_eq!((kind, &error), (FailureKind::Error, text));
        let last = row(&client, sent.id()).await.last_error.unwrap();
        assert_eq!(last, text.chars().take(480).collect::<String>());
    }
    at.end().await;
}

/// A reason to kill is refused past 200 characters; a handler's own is cut there.
pub async fn a_reason_ends_between_characters<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    for unit in ["x", "ä", "€", EMOJI] {
        for characters in [1, 199, 200, 201, 300] {
            let reason = repeated(unit, characters);
            let id = submit_fails(&client, reason.clone(), true).await.unwrap().id();
            let own = until_row(&client, id, |row| row.status == Status::Killed).await;
            let cut: String = reason.chars().take(200).collect();
            assert_eq!(own.kill_reason.as_ref(), Some(&cut));

            let hour = Duration::from_secs(3600);
            let id = submit_blob(&client, String::new()).delay(hour).await.unwrap().id();
            let killed = client.admin().kill(id, reason).await;
            if characters <= 200 {
                killed.unwrap();
                assert_eq!(row(&client, id).await.kill_reason, Some(cut));
            } else {
                let refused = killed.unwrap_err();
                assert!(matches!(refused, AdminError::ReasonTooLong { .. }), "{refused}");
            }
        }
    }
    at.end().await;
}
