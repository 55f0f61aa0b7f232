use interlock_sandbox::{CommandRules, Profile, Request, Sandbox, SandboxOptions, shim};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    shim::main_if_shim();
    let sandbox = Sandbox::open(SandboxOptions::default()).await?;
    let mut rules = CommandRules::default();
    rules.allow.push("/usr/bin/systemctl is-active {unit:[a-z-]+}".parse()?);
    let argv = ["/usr/bin/systemctl", "is-active", "primary-db"].map(str::to_owned);
    let command = rules.permit(Profile::ProdCritical, argv.to_vec())?;
    let mut running = sandbox.run(Request::new(command)).await?;
    while let Some(chunk) = running.next().await {
        print!("{}", chunk.text());
    }
    println!("{:?}", running.end().await.outcome);
    Ok(())
}
