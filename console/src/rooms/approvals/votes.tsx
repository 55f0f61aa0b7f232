/** How far an approval is: who has said what, and who is still missing. */

import type { Approval } from '../../api/client';
import { State } from '../../parts/state';
import { Ago, Instant, Text } from '../../parts/text';

export function Progress({ approval }: { approval: Approval }) {
  const given = approval.votes.filter((vote) => vote.approve).length;
  return (
    <span className="quorum">
      <span className="keys" aria-hidden="true">
        {Array.from({ length: Math.min(approval.quorum, 6) }, (_, index) => (
          <span key={index} className={index < given ? 'key given' : 'key'} />
        ))}
      </span>
      {given} of {approval.quorum}
      <span className="unseen"> approvals given</span>
    </span>
  );
}

export function ApprovalVotes({ approval }: { approval: Approval }) {
  return (
    <div className="votes">
      <p>
        <State of={approval.state} /> <Progress approval={approval} />
      </p>
      {approval.message != null && (
        <blockquote>
          <Text of={approval.message} lines />
        </blockquote>
      )}
      <ul>
        {approval.votes.map((vote) => (
          <li key={vote.person}>
            <State of={vote.approve ? 'approved' : 'rejected'} detail={null} /> by{' '}
            <strong>
              <Text of={vote.person} />
            </strong>
            {vote.on_behalf_of != null && (
              <>
                {' '}
                for <Text of={vote.on_behalf_of} />
              </>
            )}
            , <Ago at={vote.at} />
            {vote.notes != null && vote.notes !== '' && (
              <blockquote>
                <Text of={vote.notes} lines />
              </blockquote>
            )}
          </li>
        ))}
        {(approval.fallen ?? []).map((fell) => (
          <li key={`fallen ${fell.person}`}>
            The yes of{' '}
            <strong>
              <Text of={fell.person} />
            </strong>{' '}
            counts no more: <Text of={fell.why} />
          </li>
        ))}
      </ul>
      {approval.resolved_at != null && (
        <p className="quiet">
          Decided <Instant at={approval.resolved_at} />
        </p>
      )}
    </div>
  );
}
