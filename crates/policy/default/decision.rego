# The answer. Every other file adds to two sets:
#
#   deny   the action is forbidden; nobody can approve it
#   ask    people must agree first
#
# Each entry is an object: `rule` names what speaks, `text` says why, and `about`, where it is there, names what it is about.
# A file of your own in `package interlock` may add to both. Nothing can take an entry out again, so a policy that is
# added can only make the answer stricter.
package interlock

decision := {
	"verdict": verdict,
	"reasons": reasons,
	"tier": tier,
	"obligations": obligations,
}

verdict := "deny" if {
	count(deny) > 0
} else := "needs_approval" if {
	count(ask) > 0
} else := "allow"

reasons := deny if {
	count(deny) > 0
} else := ask if {
	count(ask) > 0
} else := {{"rule": "nothing_objects", "text": "no rule denies it or asks for approval"}}

# How much the action lets happen.
tier := "high" if {
	count(two_key_reasons) > 0
} else := "medium" if {
	reach == 2
} else := "low"
