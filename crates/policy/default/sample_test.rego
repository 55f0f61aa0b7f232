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

# A command step that runs this vector, of which nothing else is known than that it runs one program.
command(argv, fields) := running(argv, {}, fields)

# The same with what is known of it besides.
running(argv, known, fields) := object.union(
	changed({
		"step": {"kind": "command"},
		"action": {
			"argv": argv,
			"names": names(argv),
			"effect": "unsafe",
			"command": object.union(
				{
					"code": null,
					"programs": [names(argv)[0]],
					"starts_others": false,
					"words": [],
					"variables": [],
					"code_variables": [],
				},
				known,
			),
		},
	}),
	fields,
)

names(argv) := [name |
	some word in argv
	parts := split(word, "/")
	name := parts[count(parts) - 1]
]

# The decision on an input.
on(document) := decided if decided := data.interlock.decision with input as document

verdict_on(document) := on(document).verdict

rules_on(document) := {reason.rule | some reason in on(document).reasons}
