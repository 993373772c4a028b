//! What a submit stores, and what it refuses.

use std::collections::BTreeMap;
use std::time::Duration;

use asynccmd::{
    Client, CommandError, CommandId, Filter, Level, Status, SubmitError, command, testing,
};
use chrono::{DateTime, TimeDelta, Utc};

use super::submit::{Keyed, commands, end, submit_keyed, submit_note, told as telling};
use crate::harness::{Back, Log, row};

/// No JSON: its keys are no strings.
#[command(type = "submit.unwritable")]
async fn unwritable(map: BTreeMap<(i32, i32), i32>) -> Result<(), CommandError> {
    let _ = map;
    Ok(())
}

/// An answer a payload, in their order; everything there at one commit.
pub async fn a_batch_answers_in_its_order<B: Back>(back: B) {
    let client = Client::new(back.database());
    let payloads = (0..1234).map(|number| Keyed { key: format!("k{number}") });
    let sent = client.submit_all::<Keyed>(&client, payloads).owner("batch").await.unwrap();
    assert_eq!(sent.len(), 1234);
    assert!(sent.iter().all(|sent| sent.created));
    let stored = testing::submitted::<Keyed>(back.database()).await;
    let stored: BTreeMap<CommandId, _> = stored.iter().map(|row| (row.row.id, row)).collect();
    for (number, sent) in sent.iter().enumerate() {
        let found = stored[&sent.id()];
        assert_eq!(found.payload.key, format!("k{number}"));
        assert_eq!(found.row.biz_key, found.payload.key);
        assert_eq!((found.row.uid, found.row.owner.as_deref()), (sent.uid, Some("batch")));
    }
    let none = client.submit_all::<Keyed>(&client, []).await.unwrap();
    assert!(none.is_empty());
}

/// A payload that is refused is named, and no row of its batch is there; the transaction goes on.
pub async fn a_batch_with_a_refused_row_writes_nothing<B: Back>(back: B) {
    let client = Client::new(back.database());
    let mut tx = client.begin::<B::DB>().await.unwrap();
    let lengths = [1, 128, 129, 1];
    let payloads = lengths.map(|length| Keyed { key: "x".repeat(length) });
    let refused = client.submit_all::<Keyed>(&mut tx, payloads).await.unwrap_err();
    assert!(matches!(refused, SubmitError::InBatch { index: 2, .. }), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("payload 2") && text.contains("129") && text.contains("128"), "{text}");
    submit_keyed(&mut tx, "fits".into()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(commands(&back).await, 1);
}

/// Whatever a builder takes is in the row.
pub async fn the_options_of_a_submit_are_stored<B: Back>(back: B) {
    let client = Client::builder(back.database()).owner("default owner").build();
    let at = Utc::now() + TimeDelta::days(3);
    let at = DateTime::from_timestamp_micros(at.timestamp_micros()).unwrap();
    let full = submit_note(&client, "full".into())
        .biz_key("key: ü")
        .run_at(at)
        .priority(Level::Highest)
        .max_retry(1000)
        .owner("shop")
        .shard_key("order:42")
        .metadata("tenant", "ä \"b\"")
        .metadata("trace", "1")
        .await
        .unwrap();
    let plain = submit_note(&client, "plain".into()).await.unwrap();
    let stored = row(&client, full.id()).await;
    assert_eq!((&*stored.biz_key, stored.next_run_at, stored.priority), ("key: ü", at, -2));
    assert_eq!((stored.max_retry, stored.owner.as_deref()), (1000, Some("shop")));
    assert_eq!(&*stored.payload, r#"{"text":"full"}"#);
    let metadata: BTreeMap<String, String> =
        serde_json::from_str(stored.metadata.as_deref().unwrap()).unwrap();
    assert_eq!(
        metadata,
        [("tenant", "ä \"b\""), ("trace", "1")].map(|(k, v)| (k.into(), v.into())).into()
    );
    let shard = format!("select shard from async_command where id = {}", full.id());
    assert_eq!(back.number(shard).await, 55, "the documented hash of order:42");
    let stored = row(&client, plain.id()).await;
    assert_eq!((&*stored.biz_key, stored.priority, stored.max_retry), ("", 0, 5));
    assert_eq!((stored.owner.as_deref(), stored.metadata), (Some("default owner"), None));
    assert_eq!(stored.next_run_at, stored.created_at);
    assert_eq!((stored.status, stored.retry_count, stored.run_no), (Status::Pending, 0, 0));
}

/// What a row cannot hold is refused with the value and the limit, before anything is written, and the
/// caller's transaction is as good as before.
pub async fn a_refusal_names_value_and_limit_and_leaves_the_transaction_usable<B: Back>(back: B) {
    fn told(error: &SubmitError, parts: &[&str]) {
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text:?}");
        assert!(!error.is_transient());
    }
    let client = Client::builder(back.database()).max_payload(100).build();
    let mut tx = client.begin::<B::DB>().await.unwrap();

    let error = submit_unwritable(&mut tx, [((1, 2), 3)].into()).await.unwrap_err();
    assert!(matches!(error, SubmitError::Payload { command_type: "submit.unwritable", .. }));
    told(&error, &["submit.unwritable", "string"]);

    let error = submit_note(&mut tx, "x".repeat(101 - r#"{"text":""}"#.len())).await.unwrap_err();
    assert!(matches!(error, SubmitError::PayloadTooLarge { size: 101, limit: 100, .. }));
    told(&error, &["submit.note", "101", "100"]);
    submit_note(&mut tx, "x".repeat(100 - r#"{"text":""}"#.len())).await.unwrap();

    let long = "ä".repeat(129);
    let error = submit_keyed(&mut tx, long.clone()).biz_key(&long).await;
    assert!(matches!(
        error,
        Err(SubmitError::PayloadTooLarge { .. } | SubmitError::TooLong { .. })
    ));
    for (error, limit) in [
        (submit_note(&mut tx, String::new()).biz_key(&long).await, "128"),
        (submit_note(&mut tx, String::new()).shard_key(&long).await, "128"),
        (submit_note(&mut tx, String::new()).owner("o".repeat(65)).await, "64"),
        (submit_note(&mut tx, String::new()).metadata("m", "v".repeat(16_384)).await, "16384"),
    ] {
        let error = error.unwrap_err();
        let SubmitError::TooLong { field, length, .. } = &error else { panic!("{error}") };
        told(&error, &[field, &length.to_string(), limit]);
    }

    for error in [
        submit_note(&mut tx, String::new()).biz_key("ab\0c").await,
        submit_note(&mut tx, String::new()).shard_key("ab\0c").await,
        submit_note(&mut tx, String::new()).owner("ab\0c").await,
    ] {
        let error = error.unwrap_err();
        assert!(matches!(error, SubmitError::Nul { at: 2, .. }), "{error}");
        told(&error, &["NUL", "byte 2"]);
    }

    let past = DateTime::UNIX_EPOCH - TimeDelta::microseconds(1);
    for (error, value) in [
        (submit_note(&mut tx, String::new()).run_at(past).await, "1969"),
        (submit_note(&mut tx, String::new()).run_at(DateTime::<Utc>::MAX_UTC).await, "262142"),
        (submit_note(&mut tx, String::new()).delay(Duration::MAX).await, "now + "),
    ] {
        let error = error.unwrap_err();
        assert!(matches!(error, SubmitError::TimeOutOfRange { .. }), "{error}");
        told(&error, &[value, "9999-12-31"]);
    }

    for value in [0, 1001] {
        let error = submit_note(&mut tx, String::new()).max_retry(value).await.unwrap_err();
        assert!(matches!(error, SubmitError::MaxRetryOutOfRange { value: v } if v == value));
        told(&error, &[&value.to_string(), "1 to 1000"]);
    }

    let unique = asynccmd::Unique::UntilFinished;
    let error = submit_note(&mut tx, String::new()).unique(unique).await.unwrap_err();
    assert!(matches!(error, SubmitError::UniqueWithoutKey { command_type: "submit.note" }));
    told(&error, &["submit.note", "biz_key"]);

    submit_note(&mut tx, "after all".into()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(commands(&back).await, 2);
}

/// A text may have a NUL where it is part of the JSON: there it is escaped.
pub async fn any_text_is_a_payload<B: Back>(back: B) {
    let log = Log::default();
    let runtime = telling(&back, &log).await;
    let texts = ["nul \0 inside", "💌 \u{202e}rtl", "'; drop table async_command; --", "\\\"\n"];
    for text in texts {
        submit_note(&runtime.client(), text.into()).await.unwrap();
    }
    end(&back, &runtime).await;
    let mut seen = log.texts();
    seen.sort_unstable();
    let mut sent = texts.map(str::to_owned);
    sent.sort_unstable();
    assert_eq!(seen, sent);
}

/// Case, accents and trailing space tell keys apart: for listing, cancel and uniqueness.
pub async fn business_keys_are_byte_exact<B: Back>(back: B) {
    let client = Client::new(back.database());
    let keys = [
        "order",
        "Order",
        "order ",
        " order",
        "ordér",
        "orde\u{301}r",
        "order%",
        "ſ",
        "s",
        "ß",
        "ss",
    ];
    for key in keys {
        let unique = asynccmd::Unique::UntilFinished;
        let sent = submit_keyed(&client, key.into()).unique(unique).await.unwrap();
        assert!(sent.created, "{key:?} is another key");
    }
    for key in keys {
        let found = client.admin().list(Filter::new().biz_key(key)).await.unwrap();
        assert_eq!(found.len(), 1, "{key:?}");
        assert_eq!(found[0].biz_key, key);
        assert_eq!(client.cancel::<Keyed>(&client, key).await.unwrap(), 1, "{key:?}");
    }
}
