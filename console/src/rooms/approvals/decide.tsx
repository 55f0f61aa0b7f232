/** Deciding: on exactly what is shown here, with a comment, after a last look. */

import { useQueryClient } from '@tanstack/react-query';
import { api, must, type Approval } from '../../api/client';
import { Area, FormDialog, maybe, Select } from '../../parts/form';
import { Text } from '../../parts/text';
import { visible } from '../../text/visible';
import { WhatIsDone } from './card';
import { reasonOf, rightOn, titleOf, useDecider } from './inbox';
import { outcomeOf, type Uncounted } from './outcome';
import { Progress } from './votes';

interface Props {
  approvals: Approval[];
  approve: boolean;
  close: () => void;
}

export function DecideDialog({ approvals, approve, close }: Props) {
  const me = useDecider();
  const queries = useQueryClient();
  const rights = approvals.map((approval) => rightOn(approval, me));
  const own = rights.every((right) => right.own);
  const lenders = (rights[0]?.lenders ?? []).filter((lender) => rights.every((right) => right.lenders.includes(lender)));
  const many = approvals.length > 1;
  const verb = `${approve ? 'Approve' : 'Reject'}${many ? ` ${approvals.length}` : ''}`;

  async function decide(form: FormData) {
    const uncounted: Uncounted[] = [];
    let said = '';
    for (const approval of approvals) {
      const body = { approve, digest: approval.digest, notes: maybe(form, 'notes'), on_behalf_of: maybe(form, 'on_behalf_of') };
      try {
        const params = { path: { approval: approval.approval } };
        said = (await must(api.POST('/api/v1/approvals/{approval}/vote', { params, body }))).summary;
      } catch (error) {
        if (!many) throw error;
        uncounted.push({ title: visible(titleOf(approval, approval.subject)), why: (error as Error).message });
      }
      void queries.invalidateQueries({ queryKey: ['run', approval.run_id] });
    }
    void queries.invalidateQueries({ queryKey: ['approvals'] });
    const outcome = outcomeOf(uncounted, approvals.length);
    if (uncounted.length > 0) throw new Error(outcome);
    return many ? outcome : said;
  }

  return (
    <FormDialog title={many ? `${approve ? 'Approve' : 'Reject'} ${approvals.length} requests` : approve ? 'Approve this?' : 'Reject this?'} verb={verb} danger={!approve} close={close} act={decide}>
      <ul className="asked">
        {approvals.map((approval) => (
          <li key={approval.approval}>
            <blockquote>
              <Text of={titleOf(approval)} lines />
            </blockquote>
            {reasonOf(approval) !== undefined && (
              <p className="quiet">
                <Text of={reasonOf(approval)!} lines />
              </p>
            )}
            {many && approval.action != null && (
              <details>
                <summary>All that your vote is about</summary>
                <WhatIsDone action={approval.action} states={approval.present_state ?? []} />
              </details>
            )}
            {approval.quorum > 1 && <Progress approval={approval} />}
          </li>
        ))}
      </ul>
      <p className="prose">
        {approve
          ? many
            ? 'Each vote counts for exactly what is shown. A run goes on as soon as enough people have approved.'
            : after(approvals[0]!)
          : 'One rejection is enough: the step does not happen, and the run fails or waits for an operator, as its workflow says.'}
      </p>
      {lenders.length > 0 && (
        <Select name="on_behalf_of" label="In whose right">
          {own && <option value="">My own</option>}
          {lenders.map((lender) => (
            <option key={lender} value={lender}>
              {lender}
            </option>
          ))}
          {!own && lenders.length > 1 && <option value="">any lender who may decide</option>}
        </Select>
      )}
      <Area name="notes" label={approve ? 'Comment (optional)' : 'Why not?'} required={!approve} hint="It stays with your vote." />
    </FormDialog>
  );
}

function after(approval: Approval): string {
  const missing = approval.quorum - approval.votes.filter((vote) => vote.approve).length - 1;
  if (missing > 0) return `Your vote is recorded; ${missing} more ${missing === 1 ? 'is' : 'are'} needed before the run goes on.`;
  return 'Yours is the last vote that is needed: the run goes on at once.';
}
