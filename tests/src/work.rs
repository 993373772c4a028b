//! What the binary `worker` runs: commands whose attempts start, wait, end and die on order.
//!
//! Every start and every end of an attempt is told twice: as a line on standard output, for the test
//! that waits for it, and as a line of a file outside of the database, which outlives every process
//! and counts the effects of each command by its idempotency key.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use asynccmd::{
    Backend, BoxFuture, CommandError, CommandId, Compensation, Context, Outcome, Registry, command,
};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::act::Act;

/// What an attempt does once its row is no longer its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Late {
    /// Nothing: it is dropped where it waits.
    #[default]
    Nothing,
    /// Returns a success.
    Succeed,
    /// Returns an error.
    Fail,
    /// Asks to run later.
    Snooze,
    /// Ends the command in a transaction of its own. Of an async attempt there is no time for it.
    FinishIn,
}

/// How long a command that is snoozed too late would be away.
const LATER: Duration = Duration::from_secs(3600);

/// Waits for a gate, if it names one.
#[command(type = "work.hold", mode = "async_pool", max_retry = 3, backoff = "fixed(100ms)")]
pub async fn hold(
    gate: String,
    late: Late,
    #[state] desk: Desk,
    ctx: &Context,
) -> Result<Outcome<u32>, CommandError> {
    let attempt = desk.start(ctx);
    ctx.progress(0.5, format!("held by {}", std::process::id()));
    if late == Late::Nothing {
        desk.opened(&gate).await;
    } else {
        tokio::select! {
            () = desk.opened(&gate) => {}
            () = ctx.cancelled() => {
                ctx.progress(0.9, "too late");
                attempt.leave("cancelled");
                return match late {
                    Late::Fail => Err("too late".into()),
                    Late::Snooze => Ok(Outcome::Snooze(LATER)),
                    _ => Ok(Outcome::Success(0)),
                };
            }
        }
    }
    attempt.leave("finished");
    Ok(Outcome::Success(std::process::id()))
}

/// Blocks its thread until a gate opens, whatever it is told.
#[command(type = "work.block", mode = "async_pool", max_retry = 3, backoff = "fixed(100ms)")]
pub fn block(
    gate: String,
    late: Late,
    #[state] desk: Desk,
    #[state] finish_in: Act,
    ctx: &Context,
) -> Result<Outcome<u32>, CommandError> {
    let attempt = desk.start(ctx);
    ctx.progress(0.5, format!("held by {}", std::process::id()));
    let threads = tokio::runtime::Handle::current();
    let mut told = false;
    while !desk.is_open(&gate) {
        if ctx.is_cancelled() && !told {
            told = true;
            attempt.tell("cancelled");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    if !ctx.lease_lost() {
        attempt.leave("finished");
        return Ok(Outcome::Success(std::process::id()));
    }
    ctx.progress(0.9, "too late");
    match late {
        Late::Nothing | Late::Succeed => {
            attempt.leave("late");
            Ok(Outcome::Success(0))
        }
        Late::Fail => {
            attempt.leave("late");
            Err("too late".into())
        }
        Late::Snooze => {
            attempt.leave("late");
            Ok(Outcome::Snooze(LATER))
        }
        Late::FinishIn => {
            let ended = threads.block_on(finish_in.run(ctx));
            attempt.leave(if ended.is_ok() { "ended" } else { "refused" });
            ended.map(|()| Outcome::Success(0))
        }
    }
}

/// What [`block`] does to end its command in a transaction of its own, on this kind of database.
pub fn finish_in<DB: Backend>() -> Act {
    fn end<DB: Backend>(ctx: &Context) -> BoxFuture<'_, Result<(), CommandError>> {
        Box::pin(async move {
            let mut tx = ctx.client().begin::<DB>().await?;
            ctx.finish_in(&mut tx, 0u32).await?;
            tx.commit().await?;
            Ok(())
        })
    }
    Act::new(end::<DB>)
}

/// Works for so many milliseconds.
#[command(type = "work.toil", mode = "async_pool", max_retry = 1000)]
pub async fn toil(
    milliseconds: u64,
    #[state] desk: Desk,
    ctx: &Context,
) -> Result<u32, CommandError> {
    let attempt = desk.start(ctx);
    // The work itself, not a way to wait for something.
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    attempt.leave("finished");
    Ok(std::process::id())
}

/// Takes its process down.
#[command(type = "work.abort", mode = "async_pool", max_retry = 3)]
pub async fn abort(#[state] desk: Desk, ctx: &Context) -> Result<(), CommandError> {
    let _attempt = desk.start(ctx);
    std::process::abort();
}

/// The same, and it is made up for.
#[command(type = "work.betray", mode = "async_pool", max_retry = 3, compensate(Mourn))]
pub async fn betray(whom: String, #[state] desk: Desk, ctx: &Context) -> Result<(), CommandError> {
    let _attempt = desk.start(ctx);
    tracing::debug!(whom);
    std::process::abort();
}

/// Makes up for that.
#[command(type = "work.mourn", mode = "async_pool")]
pub async fn mourn(
    #[payload] dead: Compensation<Betray>,
    #[state] desk: Desk,
    ctx: &Context,
) -> Result<String, CommandError> {
    desk.start(ctx).leave("finished");
    Ok(format!("{}: {}", dead.payload.whom, dead.failure.message))
}

/// The commands of these names, or those that need no other one.
///
/// # Panics
/// At a name that is none.
pub fn registry(only: &[String]) -> Registry {
    let usual = ["hold", "block", "toil", "abort"].map(str::to_owned);
    let only = if only.is_empty() { &usual[..] } else { only };
    let registry = only.iter().fold(Registry::builder(), |registry, name| match name.as_str() {
        "hold" => registry.add::<Hold>(),
        "block" => registry.add::<Block>(),
        "toil" => registry.add::<Toil>(),
        "abort" => registry.add::<Abort>(),
        "betray" => registry.add::<Betray>(),
        "mourn" => registry.add::<Mourn>(),
        name => panic!("no command is called {name}"),
    });
    registry.build()
}

/// What attempts share: the gates that are open, and the file of effects.
#[derive(Debug, Clone)]
pub struct Desk {
    open: watch::Sender<BTreeSet<String>>,
    effects: Arc<File>,
}

impl Desk {
    /// A desk with no gate open but the one without a name, whose file of effects is in `dir`.
    ///
    /// # Errors
    /// If that cannot be opened.
    pub fn new(dir: &Path) -> io::Result<Self> {
        let effects = OpenOptions::new().create(true).append(true).open(effects_in(dir))?;
        Ok(Self {
            open: watch::Sender::new(BTreeSet::from([String::new()])),
            effects: Arc::new(effects),
        })
    }

    /// Opens a gate.
    pub fn open(&self, gate: &str) {
        self.open.send_modify(|open| {
            open.insert(gate.to_owned());
        });
    }

    /// Closes a gate again.
    pub fn close(&self, gate: &str) {
        self.open.send_modify(|open| {
            open.remove(gate);
        });
    }

    fn is_open(&self, gate: &str) -> bool {
        self.open.borrow().contains(gate)
    }

    async fn opened(&self, gate: &str) {
        // The sender is this desk's own: the wait cannot fail.
        let _ = self.open.subscribe().wait_for(|open| open.contains(gate)).await;
    }

    fn start<'c>(&self, ctx: &'c Context) -> Attempt<'c> {
        let attempt = Attempt { desk: self.clone(), ctx, left: false };
        attempt.tell("started");
        attempt
    }
}

/// An attempt under way: says so when it is dropped.
struct Attempt<'c> {
    desk: Desk,
    ctx: &'c Context,
    left: bool,
}

impl Attempt<'_> {
    fn tell(&self, what: &str) {
        let (id, run, key) = (self.ctx.id(), self.ctx.run_no(), self.ctx.idempotency_key());
        let pid = std::process::id();
        // One write of a line to a file opened for appending: whole, whoever else writes.
        let line = format!("{what} {key} {id} {run} {pid}\n");
        (&*self.desk.effects).write_all(line.as_bytes()).unwrap();
        println!("{what} {id} run {run} lost {}", self.ctx.lease_lost());
    }

    fn leave(mut self, how: &str) {
        self.left = true;
        self.tell(how);
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.left {
            self.tell("dropped");
        }
    }
}

fn effects_in(dir: &Path) -> PathBuf {
    dir.join("effects")
}

/// One line of the file of effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// `started`, `finished`, and what else attempts tell.
    pub what: String,
    /// The run that did it.
    pub run_no: u32,
    /// The process that did it.
    pub pid: u32,
}

/// What the attempts of each command did, in its order.
///
/// # Panics
/// If the file cannot be read, or if two commands share an idempotency key.
pub fn effects(dir: &Path) -> BTreeMap<CommandId, Vec<Effect>> {
    let text = std::fs::read_to_string(effects_in(dir)).unwrap();
    let (mut effects, mut keys) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let &[what, key, id, run_no, pid] = &words[..] else { panic!("a torn line: {line:?}") };
        let id: CommandId = id.parse::<i64>().unwrap().into();
        assert_eq!(*keys.entry(key.to_owned()).or_insert(id), id, "two commands with key {key}");
        effects.entry(id).or_default().push(Effect {
            what: what.to_owned(),
            run_no: run_no.parse().unwrap(),
            pid: pid.parse().unwrap(),
        });
    }
    effects
}
