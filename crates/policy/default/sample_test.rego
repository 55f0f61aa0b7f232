# What the tests share: an input, and a way to change some of its fields.
package interlock_test

plain := {
	"workflow": {
		"name": "pay-invoice",
		"version": 1,
		"profile": null,
		"mode": "none",
		"blast_radius": "medium",
		"approvers": [],
		"quorum": null,
		"escalate_after_s": null,
		"expires_after_s": null,
		"writes_max": null,
		"spend_max_micros": null,
	},
	"step": {
		"key": "pay",
		"position": 0,
		"kind": "task",
		"phase": null,
		"critical": false,
		"begins_phase": false,
		"phase_gate": null,
		"last": false,
		"gate": null,
		"confidence": null,
		"credentials": [],
	},
	"action": {
		"operation": "pay",
		"argv": null,
		"names": [],
		"env": [],
		"effect": "idempotent",
		"blast_radius": "medium",
		"destructive": false,
		"reversible": true,
		"rollback": null,
	},
	"run": {
		"id": "run_1",
		"workspace": "default",
		"started_by": "ada",
		"trigger": "api",
		"subject": null,
		"labels": {},
		"iteration": 0,
		"attempt": 0,
		"writes": 0,
		"spend_micros": 0,
		"unpriced": false,
		"agreed": false,
	},
	"worker": null,
	"fields": {"invoice": "INV-7"},
}

# The plain input with these fields changed.
changed(fields) := object.union(plain, fields)

# A command step that runs this vector, with the names of its words.
command(argv, names, fields) := object.union(
	changed({
		"step": {"kind": "command"},
		"action": {"argv": argv, "names": names, "effect": "unsafe"},
	}),
	fields,
)

# The decision on an input.
on(document) := decided if decided := data.interlock.decision with input as document

verdict_on(document) := on(document).verdict

rules_on(document) := {reason.rule | some reason in on(document).reasons}
