//! Payloads over time: rows of older versions, of newer ones, and of none that anybody can read.

use asynccmd::{Client, CommandError, CommandId, Context, FailureKind, Registry, Status, command};
use asynccmd::{SubmitExt as _, testing};
use serde_json::{Value, json};

use crate::harness::{Back, Log, until_row};
use crate::setting::Setting;

/// The first shape: a name in one piece.
#[command(type = "versions.greet", mode = "async_pool", payload(GreetV1))]
async fn greet_v1(name: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &name);
    Ok(())
}

/// The second: first and last name apart.
#[command(type = "versions.greet", mode = "async_pool", version = 2, payload(GreetV2))]
async fn greet_v2(
    first: String,
    last: String,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    log.add(ctx, &format!("{first}|{last}"));
    Ok(())
}

/// The third, which knows both.
#[command(
    type = "versions.salute",
    aliases("versions.greet"),
    mode = "async_pool",
    version = 3,
    upgrade(to_third),
    payload(GreetV3)
)]
async fn greet_v3(
    person: (String, String),
    from: u32,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    log.add(ctx, &format!("{}+{} of {from}", person.0, person.1));
    Ok(())
}

fn to_third(version: u32, payload: Value) -> Result<Value, String> {
    let text = |key: &str| payload[key].as_str().ok_or_else(|| format!("no `{key}`"));
    let person = match version {
        1 => {
            let name = text("name")?;
            name.split_once(' ').ok_or_else(|| format!("{name:?} is no first and last name"))?
        }
        2 => (text("first")?, text("last")?),
        other => return Err(format!("no version {other}")),
    };
    Ok(json!({ "person": person, "from": version }))
}

/// The same on a blocking thread, by a program that was not thought through.
#[command(type = "versions.greet", version = 3, upgrade(hasty), payload(Hasty))]
fn greet_hasty(person: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &person);
    Ok(())
}

fn hasty(_: u32, payload: Value) -> Result<Value, CommandError> {
    match payload["name"].as_str().expect("every payload has a name") {
        "nobody" => Err("nobody is no name".into()),
        "number" => Ok(json!({ "person": 1 })),
        name => Ok(json!({ "person": name.to_uppercase() })),
    }
}

fn v1(name: &str) -> GreetV1 {
    GreetV1 { name: name.into() }
}

fn v2(first: &str) -> GreetV2 {
    GreetV2 { first: first.into(), last: "Lovelace".into() }
}

async fn versions<B: Back>(back: &B) -> (CommandId, CommandId) {
    let client = Client::new(back.database());
    let first = v1("Ada Lovelace").submit(&client).await.unwrap().id();
    let second = v2("Augusta").submit(&client).await.unwrap().id();
    (first, second)
}

/// Every row has the version that its submitter had.
pub async fn the_version_of_a_payload_is_stored<B: Back>(back: B) {
    let client = Client::new(back.database());
    let (first, second) = versions(&back).await;
    let batch = client.submit_all::<GreetV2>(&client, [v2("Ada"), v2("Augusta")]).await.unwrap();
    for (id, version) in [(first, 1), (second, 2), (batch[0].id(), 2), (batch[1].id(), 2)] {
        assert_eq!(client.admin().get(id).await.unwrap().row.payload_version, version);
    }
}

/// Rows of older versions reach the handler in the newest shape, also by an alias, and keep what they
/// were submitted as; those of the newest one are nobody's to touch.
pub async fn older_payloads_are_upgraded_on_their_way_to_the_handler<B: Back>(back: B) {
    let (first, second) = versions(&back).await;
    let newest = GreetV3 { person: ("Grace".into(), "Hopper".into()), from: 3 };
    newest.submit(&Client::new(back.database())).await.unwrap();
    let rows = testing::submitted::<GreetV3>(back.database()).await;
    let froms: Vec<_> = rows.iter().map(|row| (row.payload.from, &*row.payload.person.0)).collect();
    assert_eq!(froms, [(1, "Ada"), (2, "Augusta"), (3, "Grace")], "and tests see the newest shape");

    let at = Setting::start(&back, Registry::builder().add::<GreetV3>().build()).await;
    at.drain().await;
    let mut texts = at.log.texts();
    texts.sort_unstable();
    assert_eq!(texts, ["Ada+Lovelace of 1", "Augusta+Lovelace of 2", "Grace+Hopper of 3"]);
    let (first, second) = (at.get(first).await.row, at.get(second).await.row);
    assert_eq!((&*first.payload, first.payload_version), (r#"{"name":"Ada Lovelace"}"#, 1));
    assert_eq!(second.payload_version, 2);
    assert_eq!((first.status, second.status), (Status::Success, Status::Success));
    at.end().await;
}

/// A rolling deploy: what a newer binary has written waits for it. No attempt is burnt and nothing dies,
/// whatever the older one makes of it in between.
pub async fn a_newer_payload_is_left_to_newer_binaries<B: Back>(back: B) {
    let (first, second) = versions(&back).await;
    let absurd = v1("Ada Absurd").submit(&Client::new(back.database())).await.unwrap().id();
    back.execute(format!(
        "update async_command set payload_version = {} where id = {absurd}",
        B::LARGEST_VERSION
    ))
    .await;
    let old = Setting::start(&back, Registry::builder().add::<GreetV1>().build()).await;
    old.drain().await;
    for id in [second, absurd] {
        let left = until_row(&old.client(), id, |row| row.run_no > 0).await;
        let left = match left.status {
            Status::Pending => left,
            _ => until_row(&old.client(), id, |row| row.status == Status::Pending).await,
        };
        assert_eq!((left.retry_count, left.crash_count, left.last_error.as_deref()), (0, 0, None));
        assert!(left.next_run_at > left.updated_at, "somebody else may have it first: {left:?}");
        assert_eq!(old.get(id).await.failures.len(), 0);
    }
    assert_eq!(old.status(first).await, Status::Success);
    assert_eq!(old.log.texts(), ["Ada Lovelace"]);
    old.end().await;

    let new = Setting::start(&back, Registry::builder().add::<GreetV2>().build()).await;
    new.next_day().await;
    assert_eq!(new.log.texts(), ["Augusta|Lovelace"]);
    let done = new.get(second).await;
    assert_eq!((done.row.status, done.row.retry_count), (Status::Success, 0));
    assert_eq!(new.status(absurd).await, Status::Pending);
    new.end().await;
}

/// An upgrade that fails, panics or makes what the handler cannot read leaves the row as it is, DEAD and
/// undecodable; a fixed deploy replays it.
pub async fn a_failed_upgrade_leaves_the_row_for_a_fixed_deploy<B: Back>(back: B) {
    let client = Client::new(back.database());
    let mut ids = Vec::new();
    for name in ["nobody", "number", "Ada Lovelace"] {
        ids.push(v1(name).submit(&client).await.unwrap().id());
    }
    let nameless = v2("Augusta").submit(&client).await.unwrap().id();
    let at = Setting::start(&back, Registry::builder().add::<Hasty>().build()).await;
    at.drain().await;
    for (id, told) in [
        (ids[0], "not upgraded from version 1 to 3: nobody is no name"),
        (ids[1], "upgraded from version 1 to 3, does not decode: invalid type: integer `1`"),
        (nameless, "from version 2 to 3: it panicked: every payload has a name"),
    ] {
        let (kind, error) = at.death(id).await;
        assert_eq!(kind, FailureKind::Undecodable);
        assert!(error.contains(told), "{told:?} in {error:?}");
    }
    assert_eq!(at.log.texts(), ["ADA LOVELACE"]);
    let row = at.get(nameless).await.row;
    assert_eq!(
        (&*row.payload, row.payload_version),
        (r#"{"first":"Augusta","last":"Lovelace"}"#, 2)
    );
    at.end().await;

    let fixed = Setting::start(&back, Registry::builder().add::<GreetV3>().build()).await;
    fixed.client().admin().retry(nameless).await.unwrap();
    fixed.drain().await;
    assert_eq!(fixed.log.texts(), ["Augusta+Lovelace of 2"]);
    fixed.end().await;
}
