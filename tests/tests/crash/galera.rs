//! A cluster of servers, each with the same data, of which one dies.

use std::collections::{BTreeMap, BTreeSet};

use asynccmd::{Client, Reason, Status, Submitted};
use asynccmd_tests::harness::{Back as _, OnMysql};
use asynccmd_tests::process::{PATIENCE, until};
use asynccmd_tests::server::Server;
use asynccmd_tests::work::{Late, Toil};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{ConnectOptions as _, Row as _};

use super::site::{Again, Site, health};

const COMMANDS: usize = 10_000;
/// So many run at the node that is killed when it is.
const HELD: usize = 3;

/// Three workers claim from one table, each at a node of its own, and one of the nodes is killed in the
/// middle. Nothing is lost; what ran at that node may run again, each time counted; nothing else does.
/// Writes that the cluster refused because of another node's are nobody's failure.
pub(crate) async fn a_cluster_that_loses_a_node_loses_no_command() {
    let mut nodes = Server::galera().await;
    let site = Site::<OnMysql>::on_server(nodes[0].url()).await;
    let options = site.pool().connect_options();
    let database = options.get_database().unwrap();
    let worker = async |at: usize, gates: &[&str]| {
        let url = of(&nodes[at]).database(database).to_url_lossy();
        // Longer than the cluster takes to give the dead node up, in which nobody can write.
        let args = ["--workers", "8", "--stall", "4000"];
        let order = site.order(url.as_str(), &[&args, gates].concat());
        site.worker_by(&format!("the worker at node {at}"), order).await
    };
    // The one whose node is going to die runs some for certain, which only the others end.
    let mut lonely = worker(2, &[]).await;
    let mut ids = site.hold(&["held"; HELD], Late::Nothing).await;
    lonely.says_times("started", HELD).await;
    let mut others = [worker(0, &["--open", "held"]).await, worker(1, &["--open", "held"]).await];
    let toil = (0..COMMANDS).map(|_| Toil { milliseconds: 20 });
    let sent = site.client.submit_all::<Toil>(&site.client, toil).await.unwrap();
    ids.extend(sent.iter().map(Submitted::id));

    until("a third has ended", true, PATIENCE, async || {
        site.count(Status::Success).await >= COMMANDS / 3
    })
    .await;
    let mut conflicts = refused(&nodes[2]).await;
    nodes[2].kill().await;
    until("all of them have ended", ids.len(), PATIENCE * 5, async || {
        site.count(Status::Success).await
    })
    .await;

    for node in &nodes[..2] {
        conflicts += refused(node).await;
    }
    for worker in &mut others {
        assert_eq!(health(worker).await, "up");
    }
    let health = health(&mut lonely).await;
    assert!(health.contains("the database has not answered"), "it lives, and says {health}");
    let gone = BTreeSet::from([lonely.id().unwrap()]);
    let Again { started, finished } = site.assert_each_counts_once(&ids, &gone).await;
    let mut shares = BTreeMap::<u32, usize>::new();
    for effect in site.effects().values().flatten().filter(|effect| effect.what == "started") {
        *shares.entry(effect.pid).or_default() += 1;
    }
    println!(
        "{COMMANDS} commands, shared {:?}: {started} ran again, {finished} twice to their end; {conflicts} writes refused",
        shares.values()
    );
    assert_eq!(shares.len(), 3, "one of them had no part in it");
    assert!(started >= HELD, "what ran at the node that was killed ran nowhere else");
    assert!(conflicts > 0, "the nodes never met");
    site.assert_receipts_match_rows().await;
}

/// A node has a commit of another one's before it has applied it. What asynccmd reads there on a connection
/// of its own waits for that.
pub(crate) async fn a_runtimes_reads_are_not_behind_another_nodes_commit() {
    const ROWS: usize = 10_000;
    let nodes = Server::galera().await;
    let site = Site::<OnMysql>::on_server(nodes[0].url()).await;
    let options = site.pool().connect_options();
    let url = of(&nodes[1]).database(options.get_database().unwrap()).to_url_lossy();
    let elsewhere = Client::new(&OnMysql::<false>::pool_at(url.as_str(), 1).await);
    assert!(elsewhere.admin().health().await.is_up());
    let toil = (0..ROWS).map(|_| Toil { milliseconds: 0 });
    site.client.submit_all::<Toil>(&site.client, toil).await.unwrap();
    for status in ["DEAD", "SUCCESS", "DEAD"] {
        // Large enough to take a while to be applied.
        site.execute(format!(
            "update async_command set status = '{status}', finished_at = utc_timestamp(6)"
        ))
        .await;
        let health = elsewhere.admin().health().await;
        let dead = health.reasons.iter().find_map(|reason| match reason {
            Reason::DeadLetters { count, .. } => Some(*count as usize),
            _ => None,
        });
        assert_eq!(dead, (status == "DEAD").then_some(ROWS), "{health}");
    }
}

fn of(node: &Server) -> MySqlConnectOptions {
    node.url().parse().unwrap()
}

/// How many transactions of this node were refused because of another node's.
async fn refused(node: &Server) -> u64 {
    let mut conn: MySqlConnection = of(node).connect().await.unwrap();
    let counts = sqlx::query(
        "show global status where variable_name in ('wsrep_local_cert_failures', 'wsrep_local_bf_aborts')",
    );
    let counts = counts.fetch_all(&mut conn).await.unwrap();
    assert_eq!(counts.len(), 2);
    counts.iter().map(|count| count.get::<String, _>(1).parse::<u64>().unwrap()).sum()
}
