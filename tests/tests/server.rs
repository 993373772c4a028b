//! The servers of a test's own do what they are told, and leave nothing.

use std::path::PathBuf;
use std::time::Duration;

use asynccmd_tests::server::Server;
use sqlx::{Connection as _, Executor as _, MySqlConnection, PgConnection};

/// Longer than a server on a busy machine takes for an answer.
const SOON: Duration = Duration::from_secs(10);

/// What a test may do with a server, by the connections of its kind.
macro_rules! server {
    ($kind:ident, $connection:ident, $data:literal) => {
        #[tokio::test]
        async fn $kind() {
            let mut server = Server::$kind().await;
            let connect = async |server: &Server| $connection::connect(server.url()).await;

            let mut conn = connect(&server).await.unwrap();
            for sql in ["create table kept (n int)", "insert into kept values (1)"] {
                conn.execute(sql).await.unwrap();
            }
            server.stop().await;
            conn.ping().await.expect_err("a stopped server has ended its connections");
            connect(&server).await.expect_err("and takes none");

            server.start().await;
            let mut conn = connect(&server).await.expect("it is back");
            server.kill().await;
            conn.ping().await.expect_err("a killed server has ended its connections");

            server.start().await;
            let mut conn = connect(&server).await.expect("it is back again");
            let kept = sqlx::query_scalar("select count(*) from kept").fetch_one(&mut conn).await;
            assert_eq!(kept.ok(), Some(1i64), "what was committed");

            server.freeze().await;
            let mut ping = Box::pin(conn.ping());
            let answer = tokio::time::timeout(Duration::from_millis(300), &mut ping).await;
            answer.expect_err("a frozen server does not answer");
            server.thaw().await;
            tokio::time::timeout(SOON, ping).await.expect("a thawed one does").unwrap();

            let data: String = sqlx::query_scalar($data).fetch_one(&mut conn).await.unwrap();
            let data = PathBuf::from(data);
            assert!(data.exists(), "{}", data.display());
            drop(server);
            conn.ping().await.expect_err("it is gone");
            assert!(!data.exists(), "its data is still there: {}", data.display());
        }
    };
}

server!(postgres, PgConnection, "show data_directory");
server!(mysql, MySqlConnection, "select @@datadir");
