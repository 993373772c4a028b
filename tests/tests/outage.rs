//! Servers that go away under work, each a test's own: stopped, frozen, killed while ends are written.
//!
//! On SQLite, whose server is the file, the same is `takeover` of the shared cases.

use std::time::Duration;

use asynccmd::{
    Client, CommandError, CommandId, Context, Pool, Registry, Status, Submitted, command,
};
use asynccmd_tests::gate::Gate;
use asynccmd_tests::harness::{Log, OnMysql, OnPostgres, OnServer, row, until_row, within};
use asynccmd_tests::server::Server;
use asynccmd_tests::setting::Setting;
use futures_util::future::join_all;

/// Two and a half times this is a server away.
const STALL: Duration = Duration::from_secs(2);
const AWAY: Duration = Duration::from_secs(5);

#[command(type = "outage.waits", mode = "async_pool")]
async fn waits(
    number: usize,
    #[state] gate: Gate,
    #[state] log: Log,
    ctx: &Context,
) -> Result<usize, CommandError> {
    let _only = gate.only(ctx);
    gate.pass().await;
    log.add(ctx, "waited");
    Ok(number)
}

#[command(type = "outage.quick", mode = "async_pool")]
async fn quick(
    number: usize,
    #[state] gate: Gate,
    #[state] log: Log,
    ctx: &Context,
) -> Result<usize, CommandError> {
    let _only = gate.only(ctx);
    log.add(ctx, "ran");
    Ok(number)
}

/// An instance with so many workers.
async fn instance<B: OnServer>(back: &B, workers: usize) -> Setting<'_, B> {
    let registry = Registry::builder().add::<Waits>().add::<Quick>().build();
    Setting::start_with(back, registry, |builder| {
        builder.pool(Pool::new("default").workers(workers)).stall_timeout(STALL)
    })
    .await
}

/// How a server is away.
#[derive(Debug, Clone, Copy)]
enum Absence {
    /// It ends every connection, and takes none.
    Stopped,
    /// It answers nobody, and ends no connection.
    Frozen,
}

impl Absence {
    async fn begin(self, server: &mut Server) {
        match self {
            Self::Stopped => server.stop().await,
            Self::Frozen => server.freeze().await,
        }
    }

    async fn end(self, server: &mut Server) {
        match self {
            Self::Stopped => server.start().await,
            Self::Frozen => server.thaw().await,
        }
    }
}

/// A hundred attempts run on two instances when the server goes away for longer than `stall_timeout`.
/// Half of them end meanwhile, the others when it is back: each has run once, nobody was declared dead,
/// health has said so, and work goes on.
async fn an_absence_costs_nothing<B: OnServer>(server: &mut Server, absence: Absence) {
    const ATTEMPTS: usize = 100;
    let back = B::empty_on(server.url()).await.furnished().await;
    let two = [instance(&back, ATTEMPTS / 2).await, instance(&back, ATTEMPTS / 2).await];
    let client = two[0].client();
    let commands = (0..ATTEMPTS).map(|number| Waits { number });
    let sent = client.submit_all::<Waits>(&client, commands).await.unwrap();
    for at in &two {
        at.gate.until_entered(ATTEMPTS / 2).await;
    }
    let instances = two.each_ref().map(|at| at.runtime.instance());

    let away = tokio::time::Instant::now();
    absence.begin(server).await;
    for at in &two {
        at.gate.open(ATTEMPTS / 4);
        at.log.until(ATTEMPTS / 4).await;
        at.until_health(false).await;
    }
    // The outage itself is what is tested, so its length is a length of time.
    tokio::time::sleep_until(away + AWAY).await;
    absence.end(server).await;
    let returned = tokio::time::Instant::now();
    for at in &two {
        at.gate.open(ATTEMPTS);
        at.until_health(true).await;
    }

    for (number, sent) in sent.iter().enumerate() {
        let row = until_row(&client, sent.id(), |row| row.status == Status::Success).await;
        assert_eq!((row.run_no, row.retry_count, row.crash_count), (1, 0, 0), "{row:?}");
        assert_eq!(row.result, Some(number.to_string()));
    }
    println!("{absence:?}: all has ended {:?} after the return", returned.elapsed());
    submit_quick(&client, 0).await.unwrap();
    within("new work is done", async {
        tokio::select! {
            () = two[0].log.until(ATTEMPTS / 2 + 1) => {}
            () = two[1].log.until(ATTEMPTS / 2 + 1) => {}
        }
    })
    .await;
    println!("{absence:?}: a new command has run {:?} after the return", returned.elapsed());
    for (at, instance) in two.iter().zip(instances) {
        assert_eq!(at.runtime.instance(), instance, "it was declared dead");
        assert_eq!(at.log.texts().iter().filter(|text| *text == "waited").count(), ATTEMPTS / 2);
    }
    for at in two {
        at.end().await;
    }
}

/// The server is killed while claims and ends are written as fast as they go: which of them are there
/// nobody is told. Each command has run once all the same, and nothing was counted against it.
async fn ends_without_an_answer_count_once<B: OnServer>(server: &mut Server) {
    const COMMANDS: usize = 6_000;
    let back = B::empty_on(server.url()).await.furnished().await;
    let two = [instance(&back, 16).await, instance(&back, 16).await];
    let client = two[0].client();
    let commands = (0..COMMANDS).map(|number| Quick { number });
    let sent = client.submit_all::<Quick>(&client, commands).await.unwrap();
    for kills in 1..=3 {
        two[0].log.until(kills * COMMANDS / 10).await;
        server.kill().await;
        server.start().await;
    }
    let mut ran: Vec<CommandId> = Vec::new();
    for sent in &sent {
        let row = until_row(&client, sent.id(), |row| row.status == Status::Success).await;
        assert_eq!((row.retry_count, row.crash_count), (0, 0), "{row:?}");
    }
    for at in two {
        ran.extend(at.log.entries().iter().map(|entry| entry.id));
        at.end().await;
    }
    ran.sort_unstable();
    assert_eq!(ran, sent.iter().map(Submitted::id).collect::<Vec<_>>(), "each has run once");
}

/// A single submit needs no connection of the pool; nor does it hear that the server was restarted since the
/// one before; nor does one suffer from another that is written with it.
async fn submits_stand_by_themselves<B: OnServer>(mut server: Server) {
    let back = B::empty_on(server.url()).await.furnished().await;
    let pool = back.pool_of(1).await;
    let held = pool.acquire().await.unwrap();
    let client = Client::new(B::database_of(&pool));
    submit_quick(&client, 0).await.unwrap();
    let used = tokio::time::Instant::now();
    drop(held);

    server.stop().await;
    server.start().await;
    // For a second after its last use a connection is trusted; what is tested is how long that is.
    tokio::time::sleep_until(used + Duration::from_secs(1)).await;
    submit_quick(&client, 1).await.unwrap();

    let check = "alter table async_command add constraint none_is_bad check (biz_key <> 'bad')";
    back.execute(check).await;
    let key = |number: usize| if number == 20 { "bad".to_owned() } else { number.to_string() };
    let submits = (0..40).map(|number| submit_quick(&client, number).biz_key(key(number)));
    let sent = join_all(submits.map(IntoFuture::into_future)).await;
    for (number, sent) in sent.into_iter().enumerate() {
        match sent {
            Ok(sent) => assert_eq!(row(&client, sent.id()).await.biz_key, key(number)),
            Err(error) => assert_eq!(number, 20, "{error}"),
        }
    }
    assert_eq!(back.number("select count(*) from async_command").await, 2 + 39);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submits_stand_by_themselves_on_postgres() {
    submits_stand_by_themselves::<OnPostgres>(Server::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submits_stand_by_themselves_on_mariadb() {
    submits_stand_by_themselves::<OnMysql>(Server::mysql().await).await;
}

async fn outages<B: OnServer>(mut server: Server) {
    an_absence_costs_nothing::<B>(&mut server, Absence::Stopped).await;
    an_absence_costs_nothing::<B>(&mut server, Absence::Frozen).await;
    ends_without_an_answer_count_once::<B>(&mut server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outages_of_postgres_cost_nothing() {
    outages::<OnPostgres>(Server::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outages_of_mariadb_cost_nothing() {
    outages::<OnMysql>(Server::mysql().await).await;
}
