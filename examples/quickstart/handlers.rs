//! The three commands. Each may run more than once (the process may die between the work and the
//! note that it is done), and each shows another way to make that harmless.

use std::time::Duration;

use asynccmd::{CommandError, Context, command};

use crate::club::{Club, on};
use crate::maildir::Maildir;

/// Addresses here fail twice and then work.
pub(crate) const FLAKY: &str = "@flaky.example";
/// Addresses here never work: their commands end as dead letters.
pub(crate) const VOID: &str = "@void.example";

/// Sends the welcome mail, as soon as the registration has committed.
///
/// Harmless to repeat: the file is named by the idempotency key, so a second run replaces it by
/// itself.
#[command(
    type = "member.send_welcome",
    mode = "immediate",
    biz_key = "{mail}",
    max_retry = 3,
    backoff = "fixed(200ms)"
)]
pub(crate) fn send_welcome(
    mail: String,
    name: String,
    #[state] maildir: Maildir,
    ctx: &Context,
) -> Result<(), CommandError> {
    if mail.ends_with(FLAKY) && ctx.attempt() <= 2 {
        return Err(format!("451 {mail}: greylisted, try again later").into());
    }
    if mail.ends_with(VOID) {
        return Err(format!("550 {mail}: no such mailbox").into());
    }
    let key = ctx.idempotency_key();
    let text = format!(
        "To: {mail}\nSubject: Welcome, {name}!\nMessage-ID: <{key}@club.example>\n\n\
         Dear {name},\n\nplease confirm your registration.\n"
    );
    maildir.deliver(&format!("{key}.eml"), ctx.run_no(), &text)?;
    Ok(())
}

/// Draws a coupon, which takes a while, and blocks the thread for as long: in a pool with threads of
/// its own that delays nobody else.
///
/// Harmless to repeat: the row is keyed by the idempotency key. That works with other systems too,
/// such as a payment provider that takes a key of the caller's.
#[command(
    type = "marketing.issue_coupon",
    mode = "async_pool",
    pool = "marketing",
    biz_key = "{mail}",
    backoff = "fixed(200ms)"
)]
pub(crate) async fn issue_coupon(
    mail: String,
    #[state] club: Club,
    ctx: &Context,
) -> Result<String, sqlx::Error> {
    std::thread::sleep(Duration::from_millis(12));
    let key = ctx.idempotency_key().to_string();
    let code = format!("WELCOME-{}", key[..8].to_uppercase());
    let insert = club.sql("insert into coupon (command, mail, code) values (?, ?, ?)");
    let drawn = on!(&club, DB, pool => {
        sqlx::query(insert).bind(&key).bind(&mail).bind(&code).execute(pool).await.map(drop)
    });
    match drawn {
        // By an earlier run.
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(code),
        drawn => drawn.map(|()| code),
    }
}

/// Notes those who have not confirmed in time; submitted with a delay.
///
/// This insert has no key, and done twice it would be there twice. It cannot be done twice: the
/// command ends in the same transaction, or the transaction does not commit.
#[command(type = "member.expire_unconfirmed", biz_key = "{mail}", backoff = "fixed(200ms)")]
pub(crate) async fn expire_unconfirmed(
    mail: String,
    #[state] club: Club,
    ctx: &Context,
) -> Result<(), CommandError> {
    let insert = club
        .sql("insert into expiry (mail) select mail from member where mail = ? and not confirmed");
    on!(&club, DB, _pool => {
        let mut tx = ctx.client().begin::<DB>().await?;
        let expired = sqlx::query(insert).bind(&mail).execute(&mut *tx).await?;
        ctx.finish_in(&mut tx, expired.rows_affected() == 1).await?;
        tx.commit().await?;
    });
    Ok(())
}
