//! Database servers of a test's own, which it may stop, kill and freeze.
//!
//! Each is a `tests/servers one`, which holds the rules of how a server is set up and run. It ends the
//! server and removes its data at the end of its input, so nothing is left of a test that is killed.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::process::Command;

use crate::process::{Process, Signal};

/// A server with no databases but its own. Dropped, it is gone, and so is its data.
#[derive(Debug)]
pub struct Server {
    process: Process,
    url: String,
}

impl Server {
    /// A PostgreSQL server that takes connections.
    ///
    /// # Panics
    /// If there is none to be had, with what to install, or if it does not come up.
    pub async fn postgres() -> Self {
        Self::run("postgres", None).await.0
    }

    /// A MariaDB server that takes connections.
    ///
    /// # Panics
    /// As [`postgres`](Self::postgres).
    pub async fn mysql() -> Self {
        Self::run("mysql", None).await.0
    }

    /// Three nodes of one Galera cluster, which are MariaDB servers with the same data. None of them
    /// starts again.
    ///
    /// # Panics
    /// As [`postgres`](Self::postgres).
    pub async fn galera() -> [Self; 3] {
        let (first, peer) = Self::run("galera", None).await;
        let (second, _) = Self::run("galera", Some(&peer)).await;
        let (third, _) = Self::run("galera", Some(&peer)).await;
        [first, second, third]
    }

    /// With where others of its cluster find it.
    async fn run(kind: &str, peer: Option<&str>) -> (Self, String) {
        // Emptied and then removed by the script; under a new name, since nothing removes it twice.
        let dir = tempfile::Builder::new().prefix("asynccmd-server.").tempdir().unwrap().keep();
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("servers"));
        command.args(["one", kind]).arg(dir).args(peer);
        let process = Process::start(format!("a {kind} server"), command);
        let said = process.says("READY").await;
        let (url, peer) = said.split_once(' ').unwrap_or((&said, ""));
        (Self { process, url: url.to_owned() }, peer.to_owned())
    }

    /// Where a superuser of it gets in, with a password, on loopback.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Stops it in order: connections are ended, and none is taken. Its data stays.
    ///
    /// # Panics
    /// As all of these: if it does not obey.
    pub async fn stop(&mut self) {
        self.order("stop", "STOPPED").await;
    }

    /// Kills it by SIGKILL. Its data stays.
    pub async fn kill(&mut self) {
        self.order("kill", "STOPPED").await;
    }

    /// Starts it again after a stop or a kill, where it was.
    pub async fn start(&mut self) {
        let url = self.order("start", "READY").await;
        assert_eq!(url, self.url, "it has moved");
    }

    /// Stops all its processes by SIGSTOP: nothing answers, and no connection ends.
    pub async fn freeze(&mut self) {
        self.order("freeze", "FROZEN").await;
    }

    /// Lets it go on after [`freeze`](Self::freeze).
    pub async fn thaw(&mut self) {
        self.order("thaw", "THAWED").await;
    }

    async fn order(&mut self, order: &str, answer: &str) -> String {
        self.process.ask(order, answer).await
    }
}

impl Drop for Server {
    /// Waits for its end, which takes a tenth of a second, so that the test leaves nothing behind.
    fn drop(&mut self) {
        if self.process.has_ended() {
            return;
        }
        self.process.signal(Signal::TERM);
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.process.has_ended() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
