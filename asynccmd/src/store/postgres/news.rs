//! News between clients and instances, by NOTIFY and LISTEN on connections of their own.
//!
//! A NOTIFY within a caller's transaction would make the commits of the whole database wait for one
//! another, so it is sent after the commit, and need not survive a crash of the server.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgNotification, PgPoolOptions};

use super::fault::classify;
use super::wire::Wire;
use crate::error::StoreError;
use crate::store::Result;
use crate::store::model::{Heard, News};

/// The channel. It belongs to the database, as the tables do.
const CHANNEL: &str = "asynccmd";

/// PostgreSQL takes less than 8,000 bytes.
const LONGEST: usize = 7_900;

/// In the place of a list that is too long: anything may be due.
const ANYTHING: &str = "*";

/// Tells every instance that listens.
pub(super) async fn announce(conn: &mut Wire<'_>, news: &News) -> Result<(), sqlx::Error> {
    conn.execute(sqlx::query(include_str!("sql/announce.sql")).bind(CHANNEL).bind(written(news)))
        .await?;
    Ok(())
}

/// Listens until the connection is lost.
pub(super) async fn listen(
    pool: PgPoolOptions,
    options: PgConnectOptions,
    check: Duration,
    heard: &(dyn Fn(Heard) + Send + Sync),
) -> Result<()> {
    let pool = pool.min_connections(0).max_connections(1).connect_lazy_with(options);
    let mut listener = in_time(check, PgListener::connect_with(&pool)).await?;
    listener.eager_reconnect(false);
    in_time(check, listener.listen(CHANNEL)).await?;
    heard(Heard::Listening);
    loop {
        match tokio::time::timeout(check, listener.try_recv()).await {
            Ok(Ok(Some(notification))) => {
                if let Some(news) = read(&notification) {
                    heard(Heard::News(news));
                }
            }
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(classify(error)),
            // Silence, or a peer that is gone without a word.
            Err(_) => {
                in_time(check, sqlx::query("select 1").execute(&mut listener)).await?;
            }
        }
    }
}

async fn in_time<T>(
    deadline: Duration,
    call: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T> {
    match tokio::time::timeout(deadline, call).await {
        Ok(done) => done.map_err(classify),
        Err(_) => Err(StoreError::NoAnswer(deadline)),
    }
}

/// `signature`, `!` if an operator is at work, and the types, with blanks between. A type has none.
fn written(news: &News) -> String {
    let mut text = format!("{:016x}", news.from);
    if news.operated {
        text.push_str(" !");
    }
    let length: usize = news.types.iter().map(|name| name.len() + 1).sum();
    if text.len() + length > LONGEST {
        text.push(' ');
        text.push_str(ANYTHING);
    } else {
        for name in &news.types {
            text.push(' ');
            text.push_str(name);
        }
    }
    text
}

/// Nothing of what is not ours, or of a version that writes it otherwise.
fn read(notification: &PgNotification) -> Option<News> {
    parsed(notification.payload())
}

fn parsed(text: &str) -> Option<News> {
    let mut words = text.split(' ');
    let from = u64::from_str_radix(words.next()?, 16).ok()?;
    let mut news = News { from, ..News::default() };
    for word in words {
        match word {
            // Whoever hears of an operator looks for everything.
            "!" | ANYTHING => news.operated = true,
            name => news.types.push(name.to_owned()),
        }
    }
    Some(news)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_arrive_as_they_were_told() {
        let news = News { from: 7, types: vec!["a.b".into(), "c".into()], operated: false };
        assert_eq!(parsed(&written(&news)), Some(news));
        let operated = News { from: u64::MAX, types: Vec::new(), operated: true };
        assert_eq!(parsed(&written(&operated)), Some(operated));
    }

    #[test]
    fn more_types_than_a_message_takes_are_anything() {
        let types = (0..1000).map(|number| format!("type.{number}")).collect();
        let text = written(&News { from: 1, types, operated: false });
        assert!(text.len() < 8000, "{}", text.len());
        assert_eq!(parsed(&text), Some(News { from: 1, types: Vec::new(), operated: true }));
    }

    #[test]
    fn strange_messages_are_no_news() {
        assert_eq!(parsed(""), None);
        assert_eq!(parsed("hello world"), None);
    }
}
