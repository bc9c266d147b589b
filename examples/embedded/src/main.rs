use zenobe::Database;
use zenobe_example_embedded::{Failure, client, create_table, visit};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(guest)) = (arguments.next(), arguments.next()) else {
        return Err("usage: zenobe-example-embedded DIRECTORY GUEST".into());
    };
    let database = Database::open(directory).await?;
    let client = client(&database);
    create_table(&client).await?;
    let visits = visit(&client, &guest).await?;
    println!("{guest}: {visits}");
    database.close().await?;
    Ok(())
}
