# Who is asked, how many must agree, and how long they have.
package interlock

obligations := {
	"quorum": quorum,
	"approvers": approvers,
	"exclude": exclude,
	"self_approval": self_approval,
	"escalate_after_s": escalate_after_s,
	"expires_after_s": expires_after_s,
	"scope": scope,
} if {
	verdict == "needs_approval"
} else := null

# Two different people for two keys; more where the workflow says so.
quorum := max({1, keys} | {wanted | wanted := input.workflow.quorum; wanted != null})

keys := 2 if {
	needs_two_keys
} else := 1

# The groups that the configuration names for the environment. A workflow may narrow them to some of these, and names its
# own where the configuration has none. An empty list means everybody with the role.
configured := object.get(data.config.approvers, environment, [])

narrowed := [group | some group in input.workflow.approvers; group in configured]

approvers := narrowed if {
	count(narrowed) > 0
} else := configured if {
	count(configured) > 0
} else := input.workflow.approvers

# Whether a gate of the workflow asks nobody whom the configuration would not: people of some of its groups, where it names
# any.
asks_enough(gate) if {
	gate != null
	count(configured) == 0
}

asks_enough(gate) if {
	gate != null
	count(gate.approvers) > 0
	every group in gate.approvers {
		group in configured
	}
}

# Whoever started the run does not decide on it. With two keys, neither does whoever wrote the workflow.
exclude := ["starter", "author"] if {
	needs_two_keys
} else := ["starter"]

# Whether the tenant's setting `approval.self` may lift that.
default self_approval := false

self_approval if {
	not needs_two_keys
	not production
}

# When people are reminded. A workflow may ask for it sooner.
escalate_after_s := min({sla} | {wanted | wanted := input.workflow.escalate_after_s; wanted != null})

sla := data.config.sla.production_s if {
	production
} else := data.config.sla.other_s

expires_after_s := min({data.config.sla.expires_s} | {wanted | wanted := input.workflow.expires_after_s; wanted != null})

# What one approval may cover: this step, or all that the step's phase does.
scope := "phase" if {
	input.workflow.mode == "per_phase"
	not needs_two_keys
} else := "step"
