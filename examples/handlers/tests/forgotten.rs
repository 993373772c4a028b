//! A test file that does not name the library. Its only test, because a second one could.

use asynccmd::{Problem, Registry, Runtime, StartError};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

#[tokio::test]
async fn a_test_file_that_does_not_name_the_library_is_told_so() {
    assert_eq!(Registry::collect().specs().len(), 0);
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new()
        .filename(directory.path().join("letters.db"))
        .create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    asynccmd::migrate(&pool).await.unwrap();
    let refused = Runtime::builder(pool).start().await.expect_err("there is nothing to run");
    let told = refused.to_string();
    let StartError::Registry(error) = refused else { panic!("{told}") };
    assert_eq!(error.problems, [Problem::Empty]);
    assert!(told.contains("use handlers as _;") && told.contains("every test file"), "{told}");
}
