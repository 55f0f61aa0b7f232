use interlock_worker::{Flow, Tasks, WaitFor};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Order {
    id: String,
}

#[derive(Serialize)]
struct Checked {
    id: String,
}

fn main() {
    let tasks = Tasks::new();
    let tasks = tasks.task("check", |_ctx, order: Order| async move { Ok(Checked { id: order.id }) });
    let tasks = tasks.task("ship", |ctx, order: Order| async move {
        if ctx.signal::<serde_json::Value>()?.is_some() {
            return Ok(Flow::Done(order.id));
        }
        Ok(Flow::Wait(WaitFor::signal("carrier.arrived").key(order.id)))
    });
    assert_eq!(tasks.names().collect::<Vec<_>>(), ["check", "ship"]);
}
