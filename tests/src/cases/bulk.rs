//! More rows in one call than any statement takes.

use std::collections::HashSet;

use asynccmd::{Client, CommandError, Status, command};

use crate::harness::{Back, long};

#[command(type = "bulk.row", biz_key = "{number}")]
async fn bulk_row(number: usize, text: String) -> Result<(), CommandError> {
    let _ = (number, text);
    Ok(())
}

#[command(type = "bulk.unique", biz_key = "{number}", unique)]
async fn bulk_unique(number: usize) -> Result<(), CommandError> {
    let _ = number;
    Ok(())
}

/// Several statements of each back end; in the long suite a hundred thousand.
fn rows() -> usize {
    if long() { 100_000 } else { 20_000 }
}

/// In the caller's transaction; the answer is in the order of the batch, and each row is its own.
pub async fn a_large_batch_answers_in_its_order<B: Back>(back: B) {
    let count = rows();
    let client = Client::new(back.database());
    let mut tx = client.begin::<B::DB>().await.unwrap();
    let batch = (0..count).map(|number| BulkRow { number, text: "ä".repeat(number % 100) });
    let sent = client.submit_all::<BulkRow>(&mut tx, batch).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(sent.len(), count);
    assert!(sent.iter().all(|sent| sent.created));
    let ids: HashSet<_> = sent.iter().map(|sent| sent.id()).collect();
    assert_eq!(ids.len(), count, "each has a number of its own");
    for at in (0..count).step_by(997).chain([count - 1]) {
        let row = client.admin().get(sent[at].id()).await.unwrap().row;
        assert_eq!((row.biz_key, row.status), (at.to_string(), Status::Pending));
        assert_eq!(row.uid, sent[at].uid);
    }
    assert_eq!(back.number("select count(*) from async_command").await, count as i64);
}

/// The same of unique commands, of which some are there and some come twice, over the bounds of
/// statements.
pub async fn a_large_batch_honours_unique_keys<B: Back>(back: B) {
    const KEYS: usize = 12_000;
    let client = Client::new(back.database());
    let before: Vec<_> = (0..KEYS).step_by(5).map(|number| BulkUnique { number }).collect();
    let before = client.submit_all::<BulkUnique>(&client, before).await.unwrap();
    let twice = (0..KEYS).chain((0..KEYS).rev()).map(|number| BulkUnique { number });
    let sent = client.submit_all::<BulkUnique>(&client, twice).await.unwrap();
    assert_eq!(sent.len(), 2 * KEYS);
    for at in 0..KEYS {
        let (first, second) = (&sent[at], &sent[2 * KEYS - 1 - at]);
        assert_eq!((first.created, second.created), (at % 5 != 0, false), "{at}");
        assert_eq!((first.id, first.uid), (second.id, second.uid), "{at}");
        if at % 5 == 0 {
            assert_eq!(first.id, before[at / 5].id, "{at}");
        }
    }
    assert_eq!(back.number("select count(*) from async_command").await, KEYS as i64);
}
