//! One runtime on two databases: the same pools, handlers and limits; all else is each one's own.
//!
//! The databases may be of any kinds: `cases/also.rs` gives two of the same kind, `tests/mixed.rs` two
//! different ones.

use std::time::Duration;

use asynccmd::{
    Client, CommandError, CommandId, Context, Poll, Pool, Reason, Registry, Runtime,
    RuntimeBuilder, SchemaError, StartError, Status, StoreError, command, testing,
};

use crate::act::Act;
use crate::gate::Gate;
use crate::harness::{Back, DEADLINE, Log, until_number, until_row, within};

/// Slow by the runtime's measure: nothing is claimed ahead of it.
const SLOW: Duration = Duration::from_millis(60);

/// A gate for each database.
#[derive(Clone, Default)]
struct Gates([Gate; 2]);

/// Waits to be let go.
#[command(type = "also.waits", mode = "async_pool", pool = "three")]
async fn waits(
    shard: usize,
    #[state] gates: Gates,
    #[state] all: Gate,
) -> Result<(), CommandError> {
    let slow = tokio::time::sleep(SLOW);
    {
        let _inside = all.enter();
        gates.0[shard].pass().await;
    }
    slow.await;
    Ok(())
}

#[command(type = "also.in_turn", mode = "scheduled")]
async fn in_turn(
    shard: usize,
    #[state] gates: Gates,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    let slow = tokio::time::sleep(SLOW);
    gates.0[shard].pass().await;
    slow.await;
    log.add(ctx, &format!("in turn {shard}"));
    Ok(())
}

#[command(type = "also.now", mode = "immediate")]
async fn now(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

#[command(type = "also.quick", mode = "async_pool")]
async fn quick(shard: usize, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &format!("quick {shard}"));
    Ok(())
}

/// Holds the only thread of its pool, so that the next one is ready and cannot start.
#[command(type = "also.rude", mode = "async_pool", pool = "one_thread")]
async fn rude(#[state] all: Gate) -> Result<(), CommandError> {
    all.pass_blocking();
    Ok(())
}

/// Submits to its database by its client, by its state and as a follow-up, and ends in a transaction there.
#[command(type = "also.at_home", mode = "async_pool", payload(AtHome))]
async fn at_home(
    shard: usize,
    #[state] client: Client,
    #[state] ends: Ends,
    ctx: &Context,
) -> Result<(), CommandError> {
    ctx.progress(0.5, format!("at home in {shard}"));
    submit_quick(&ctx.client(), shard).await?;
    submit_quick(&client, shard).await?;
    submit_quick(ctx, shard).await?;
    ends.0[shard].run(ctx).await
}

/// For each database how a command ends in a transaction there.
#[derive(Clone)]
struct Ends([Act; 2]);

fn ending<B: Back>() -> Act {
    Act::new(|ctx: &Context| {
        Box::pin(async move {
            let mut tx = ctx.client().begin::<B::DB>().await?;
            B::execute_on(&mut tx, format!("insert into effect values ({}, 'x')", ctx.id())).await;
            ctx.finish_in(&mut tx, "in a transaction").await?;
            tx.commit().await?;
            Ok(())
        })
    })
}

fn registry() -> Registry {
    Registry::builder()
        .add::<Waits>()
        .add::<InTurn>()
        .add::<Now>()
        .add::<Quick>()
        .add::<Rude>()
        .add::<AtHome>()
        .build()
}

/// A runtime on two databases, with what its handlers take.
struct Both {
    runtime: Runtime,
    gates: Gates,
    all: Gate,
    log: Log,
}

fn builder<A: Back, B: Back>(a: &A, b: &B) -> RuntimeBuilder {
    let builder = a.runtime(registry()).also(b.database()).pool(Pool::new("three").workers(3));
    let builder = builder.pool(Pool::new("one_thread").workers(8).threads(1));
    builder.state(Ends([ending::<A>(), ending::<B>()]))
}

impl Both {
    async fn start<A: Back, B: Back>(
        a: &A,
        b: &B,
        settings: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder,
    ) -> Self {
        let (gates, all, log) = (Gates::default(), Gate::default(), Log::default());
        let builder = builder(a, b).state(gates.clone()).state(all.clone()).state(log.clone());
        let runtime = settings(builder).start().await.unwrap();
        Self { runtime, gates, all, log }
    }

    fn client(&self, shard: usize) -> &Client {
        &self.runtime.clients()[shard]
    }

    fn gate(&self, shard: usize) -> &Gate {
        &self.gates.0[shard]
    }

    fn open(&self, count: usize) {
        self.gates.0.iter().for_each(|gate| gate.open(count));
    }

    /// Returns after both schedulers have turned: what the second of two commands finds has been done
    /// in the turn of the first.
    async fn turned(&self) {
        for _ in 0..2 {
            let before = self.log.entries().len();
            for shard in [0, 1] {
                submit_now(self.client(shard), "now".into()).await.unwrap();
            }
            self.log.until(before + 2).await;
        }
    }

    /// The commands of this type that are RUNNING, in both.
    async fn running<A: Back, B: Back>(a: &A, b: &B, name: &str) -> i64 {
        let sql = format!(
            "select count(*) from async_command where cmd_type = '{name}' and status = 'RUNNING'"
        );
        a.number(sql.clone()).await + b.number(sql).await
    }

    async fn end<A: Back, B: Back>(self, a: &A, b: &B) {
        testing::drain(&self.runtime).await;
        self.runtime.shutdown().await;
        assert_eq!((a.number(INSTANCES).await, b.number(INSTANCES).await), (0, 0));
        a.assert_receipts_match_rows().await;
        b.assert_receipts_match_rows().await;
    }
}

const INSTANCES: &str = "select count(*) from async_command_instance";

async fn wait_at<B: Back>(back: &B, shard: usize, count: usize) -> Vec<CommandId> {
    let client = Client::new(back.database());
    let commands = (0..count).map(|_| Waits { shard });
    let sent = client.submit_all::<Waits>(&client, commands).await.unwrap();
    sent.iter().map(asynccmd::Submitted::id).collect()
}

/// What is due in either is run once, and submits through each client run as well.
pub async fn commands_of_both_run<A: Back, B: Back>(a: A, b: B) {
    for (shard, client) in [(0, Client::new(a.database())), (1, Client::new(b.database()))] {
        client.submit_all::<Quick>(&client, (0..200).map(|_| Quick { shard })).await.unwrap();
    }
    let at = Both::start(&a, &b, |builder| builder).await;
    let [one, two] = at.runtime.clients() else { panic!("two clients") };
    for (shard, client) in [(0, one), (1, two)] {
        submit_quick(client, shard).await.unwrap();
    }
    testing::drain(&at.runtime).await;
    let done = "select count(*) from async_command where status = 'SUCCESS' and run_no = 1";
    assert_eq!((a.number(done).await, b.number(done).await), (201, 201));
    assert_eq!(at.log.entries().len(), 402);
    let instances = at.runtime.instances();
    assert!(instances.len() == 2 && instances[0] != instances[1], "{instances:?}");
    assert_eq!(at.runtime.instance(), instances[0]);
    at.end(&a, &b).await;
}

/// Also of quick work, which is claimed far ahead, each has its part all along.
pub async fn both_get_a_fair_part_of_quick_work<A: Back, B: Back>(a: A, b: B) {
    const EACH: usize = 2_000;
    for (shard, client) in [(0, Client::new(a.database())), (1, Client::new(b.database()))] {
        client.submit_all::<Quick>(&client, (0..EACH).map(|_| Quick { shard })).await.unwrap();
    }
    let at = Both::start(&a, &b, |builder| builder).await;
    at.log.until(EACH).await;
    let texts = at.log.texts();
    let ones = texts[..EACH].iter().filter(|text| *text == "quick 0").count();
    assert!((EACH / 4..=EACH - EACH / 4).contains(&ones), "{ones} of the first {EACH}");
    at.end(&a, &b).await;
}

/// Never more attempts at once than the pool has workers, and no row of either is claimed ahead of slow
/// work: whichever scheduler sees the room first.
pub async fn a_pool_bounds_both_together<A: Back, B: Back>(a: A, b: B) {
    wait_at(&a, 0, 12).await;
    wait_at(&b, 1, 12).await;
    let at = Both::start(&a, &b, |builder| builder).await;
    for round in 1..=7 {
        at.all.until_entered(3 * round).await;
        at.turned().await;
        assert_eq!(at.all.inside(), 3);
        assert_eq!(Both::running(&a, &b, "also.waits").await, 3, "in round {round}");
        // The three that are inside, from whichever they are.
        let inside = [at.gate(0).inside(), at.gate(1).inside()];
        at.gate(0).open(inside[0]);
        at.gate(1).open(inside[1]);
    }
    at.open(24);
    testing::drain(&at.runtime).await;
    assert_eq!((at.all.entered(), at.all.most()), (24, 3));
    at.end(&a, &b).await;
}

/// A limit of one is one attempt at a time, and each gets its turn.
pub async fn a_type_limit_bounds_both_together<A: Back, B: Back>(a: A, b: B) {
    wait_at(&a, 0, 4).await;
    wait_at(&b, 1, 4).await;
    let at = Both::start(&a, &b, |builder| builder.type_limit("also.waits", 1)).await;
    for round in 1..=4 {
        at.all.until_entered(round).await;
        at.turned().await;
        assert_eq!(Both::running(&a, &b, "also.waits").await, 1, "in round {round}");
        let inside = usize::from(at.gate(1).inside() == 1);
        at.gate(inside).open(1);
    }
    assert_eq!((at.gate(0).entered(), at.gate(1).entered()), (2, 2), "in turn");
    at.open(8);
    testing::drain(&at.runtime).await;
    assert_eq!((at.all.entered(), at.all.most()), (8, 1));
    at.end(&a, &b).await;
}

/// The room that one leaves is the other's, and comes back as attempts end: then both hold equal parts.
pub async fn both_get_a_fair_part<A: Back, B: Back>(a: A, b: B) {
    wait_at(&a, 0, 12).await;
    let at = Both::start(&a, &b, |builder| builder).await;
    at.gate(0).until_entered(3).await;
    wait_at(&b, 1, 12).await;
    submit_waits(at.client(1), 1).await.unwrap();
    at.turned().await;
    assert_eq!(at.gate(1).entered(), 0, "there is no room yet");
    // Its part is one or two of three: the first one is its own, whoever is told of it.
    at.gate(0).open(1);
    at.gate(1).until_entered(1).await;
    for round in 1..=4 {
        for shard in [0, 1] {
            at.turned().await;
            let inside = [at.gate(0).inside(), at.gate(1).inside()];
            assert!(matches!(inside, [1, 2] | [2, 1]), "{inside:?} in round {round}");
            at.gate(shard).open(1);
            at.all.until_entered(3 + 1 + 2 * (round - 1) + shard + 1).await;
        }
    }
    at.open(30);
    at.end(&a, &b).await;
}

/// Of a pool with one worker each has every other turn.
pub async fn both_take_turns_at_one_worker<A: Back, B: Back>(a: A, b: B) {
    for (shard, client) in [(0, Client::new(a.database())), (1, Client::new(b.database()))] {
        client.submit_all::<InTurn>(&client, (0..5).map(|_| InTurn { shard })).await.unwrap();
    }
    let at = Both::start(&a, &b, |builder| builder).await;
    within("the first one", async {
        tokio::select! {
            () = at.gate(0).until_entered(1) => {}
            () = at.gate(1).until_entered(1) => {}
        }
    })
    .await;
    at.turned().await;
    at.open(10);
    testing::drain(&at.runtime).await;
    let texts = at.log.texts();
    let turns: Vec<_> = texts.iter().filter(|text| text.starts_with("in turn")).collect();
    assert_eq!(turns.len(), 10);
    assert!(turns.windows(2).all(|pair| pair[0] != pair[1]), "{turns:?}");
    at.end(&a, &b).await;
}

/// With one of them away, in the middle of its claims and with ends that cannot be written, the other has
/// all of the room, in every pool; health tells them apart.
pub async fn one_that_is_away_holds_up_no_other<A: Back, B: Back>(a: A, b: B) {
    let ids = wait_at(&a, 0, 6).await;
    // It is asked all the time: claims for every pool get no answer, too.
    let often = Poll::fixed_delay(Duration::from_millis(10));
    let at = Both::start(&a, &b, |builder| builder.poll(often)).await;
    at.gate(0).until_entered(3).await;
    let held = a.hold_everything().await;
    let begin = std::time::Instant::now();
    // They end, and hold their places: nobody writes that they have ended.
    at.gate(0).open(6);
    at.gate(0).until_empty().await;
    at.gate(1).open(10);
    for _ in 0..10 {
        submit_waits(at.client(1), 1).await.unwrap();
        submit_in_turn(at.client(1), 1).await.unwrap();
    }
    at.gate(1).open(10);
    at.gate(1).until_entered(20).await;
    // By far less than a statement is given to be answered: nobody has waited for that.
    assert!(begin.elapsed() < Duration::from_secs(10), "held up for {:?}", begin.elapsed());
    let away = |reason: &Reason| matches!(reason, Reason::DatabaseAway { .. });
    within("health of the one that is away", async {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        while !at.client(0).admin().health().await.reasons.iter().any(away) {
            again.tick().await;
        }
    })
    .await;
    let health = at.client(1).admin().health().await;
    assert!(health.is_up(), "{health}");
    submit_now(at.client(1), "beside it".into()).await.unwrap();
    at.log.until(11).await;
    held.rollback().await.unwrap();
    for id in ids {
        let row = until_row(at.client(0), id, |row| row.status == Status::Success).await;
        assert_eq!((row.retry_count, row.crash_count), (0, 0), "{row:?}");
    }
    assert_eq!((at.gate(0).entered(), at.gate(1).entered()), (6, 20), "each has run once");
    assert!(at.all.most() <= 3, "{} at once", at.all.most());
    at.end(&a, &b).await;
}

/// Ready commands of both wait in one queue. Those that cannot start, and those that a shutdown finds there,
/// go back to the database that each is from.
pub async fn ready_commands_go_back_where_they_are_from<A: Back, B: Back>(a: A, b: B) {
    let at = Both::start(&a, &b, |builder| builder).await;
    let runs = submit_rude(at.client(0)).await.unwrap().id();
    at.all.until_entered(1).await;
    let mut ready = Vec::new();
    for shard in [0, 1, 0, 1, 0, 1] {
        ready.push((shard, submit_rude(at.client(shard)).await.unwrap().id()));
    }
    for (shard, id) in &ready[..2] {
        // Given back twice, and claimed again.
        until_row(at.client(*shard), *id, |row| row.run_no >= 3).await;
        until_row(at.client(*shard), *id, |row| row.status == Status::Running).await;
    }
    tokio::join!(at.runtime.shutdown(), async {
        for (shard, id) in &ready {
            let row = until_row(at.client(*shard), *id, |row| row.status == Status::Pending).await;
            assert_eq!((row.retry_count, row.crash_count), (0, 0), "{row:?}");
        }
        assert_eq!((at.all.inside(), at.all.entered()), (1, 1), "the first one runs on");
        at.all.open(1);
    });
    until_row(at.client(0), runs, |row| row.status == Status::Success).await;
    assert_eq!((a.number(INSTANCES).await, b.number(INSTANCES).await), (0, 0));
    a.assert_receipts_match_rows().await;
    b.assert_receipts_match_rows().await;
}

/// Follow-ups, autocommit submits, `finish_in` and progress of an attempt are its row's database's.
pub async fn what_a_command_does_stays_in_its_database<A: Back, B: Back>(a: A, b: B) {
    let at = Both::start(&a, &b, |builder| builder).await;
    for (shard, count) in [(0, 3), (1, 5)] {
        for _ in 0..count {
            submit_at_home(at.client(shard), shard).await.unwrap();
        }
    }
    testing::drain(&at.runtime).await;
    async fn count<B: Back>(back: &B, of: &str) -> i64 {
        back.number(format!("select count(*) from {of}")).await
    }
    for (table, each) in [
        ("async_command where cmd_type = 'also.at_home' and status = 'SUCCESS'", 1),
        ("async_command where cmd_type = 'also.quick' and status = 'SUCCESS'", 3),
        ("effect", 1),
    ] {
        assert_eq!((count(&a, table).await, count(&b, table).await), (3 * each, 5 * each));
    }
    let texts = at.log.texts();
    assert_eq!(texts.iter().filter(|text| *text == "quick 0").count(), 9);
    assert_eq!(texts.iter().filter(|text| *text == "quick 1").count(), 15);
    at.end(&a, &b).await;
}

/// Through each client, with no poll within the hour.
pub async fn immediate_commands_start_in_each<A: Back, B: Back>(a: A, b: B) {
    let hour = Poll::fixed_delay(Duration::from_secs(3600));
    let at = Both::start(&a, &b, |builder| builder.poll(hour)).await;
    for count in 1..=10 {
        let mut tx = at.client(0).begin::<A::DB>().await.unwrap();
        submit_now(&mut tx, "one".into()).await.unwrap();
        tx.commit().await.unwrap();
        at.log.until(2 * count - 1).await;
        submit_now(at.client(1), "two".into()).await.unwrap();
        at.log.until(2 * count).await;
    }
    at.end(&a, &b).await;
}

/// A runtime that cannot work on all of them starts on none, and says which one it was.
pub async fn a_start_is_on_all_or_none<A: Back, B: Back>(a: A, b: B, never_migrated: B) {
    let ready = |builder: RuntimeBuilder| {
        builder.state(Gates::default()).state(Gate::default()).state(Log::default())
    };
    let twice =
        ready(builder(&a, &b).also(A::database_of(&a.pool_of(2).await))).start().await.unwrap_err();
    let StartError::SameDatabase { first, second, .. } = twice else { panic!("{twice}") };
    assert_eq!((first, second), (1, 3));
    assert!(twice.to_string().contains("give each database once"), "{twice}");
    let missing = ready(builder(&a, &never_migrated)).start().await.unwrap_err();
    let StartError::OneOf { position, count, source, .. } = &missing else { panic!("{missing}") };
    assert_eq!((*position, *count), (2, 2));
    assert!(matches!(source, StoreError::Schema(SchemaError::Missing)), "{source}");
    let text = format!("{missing:?}");
    assert!(text.starts_with("database 2 of 2 (") && text.contains("asynccmd::migrate"), "{text}");
    assert_eq!(text.matches("has no asynccmd tables").count(), 1, "{text}");
    assert_eq!((a.number(INSTANCES).await, b.number(INSTANCES).await), (0, 0));
}

/// Past the grace what runs is given back, in each of them, and one that is away keeps no other.
pub async fn a_shutdown_gives_back_in_each<A: Back, B: Back>(a: A, b: B) {
    wait_at(&a, 0, 2).await;
    let at = Both::start(&a, &b, |builder| builder.grace(Duration::ZERO)).await;
    at.gate(0).until_entered(2).await;
    wait_at(&b, 1, 1).await;
    let last = submit_waits(at.client(1), 1).await.unwrap().id();
    at.gate(1).until_entered(1).await;
    let held = a.hold_everything().await;
    let begin = std::time::Instant::now();
    tokio::join!(at.runtime.shutdown(), async {
        until_number(&b, INSTANCES, 0).await;
        assert_eq!(at.gate(1).inside(), 0, "its attempt was cancelled");
        held.rollback().await.unwrap();
    });
    assert!(begin.elapsed() < DEADLINE);
    let given_back = "select count(*) from async_command where status = 'PENDING' and retry_count = 0 and crash_count = 0";
    assert_eq!((a.number(given_back).await, b.number(given_back).await), (2, 2));
    let row = Client::new(b.database()).admin().get(last).await.unwrap().row;
    assert_eq!(row.run_no, 0, "there was no room for it");
    assert_eq!((a.number(INSTANCES).await, b.number(INSTANCES).await), (0, 0));
    a.assert_receipts_match_rows().await;
    b.assert_receipts_match_rows().await;
}
