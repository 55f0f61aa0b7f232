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

fn tasks() -> Tasks {
    let tasks = Tasks::new();
    let tasks = tasks.task("check", |_ctx, order: Order| async move { Ok(Checked { id: order.id }) });
    tasks.task("ship", |ctx, order: Order| async move {
        if ctx.signal::<serde_json::Value>()?.is_some() {
            return Ok(Flow::Done(order.id));
        }
        Ok(Flow::Wait(WaitFor::signal("carrier.arrived").key(order.id)))
    })
}

fn main() {
    for name in tasks().names() {
        println!("{name}");
    }
}

#[test]
fn both_tasks_have_the_names_that_workflows_use() {
    assert_eq!(tasks().names().collect::<Vec<_>>(), ["check", "ship"]);
}
