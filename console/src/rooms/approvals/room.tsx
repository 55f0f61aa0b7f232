/** The inbox: approvals that wait for a decision, mine first, with their clocks. */

import { useRef, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import type { Approval } from '../../api/client';
import { useMay } from '../../api/session';
import { useKeys } from '../../keyboard/keys';
import { Button } from '../../parts/button';
import { Input, Select } from '../../parts/form';
import { Empty, Loading, ProblemNote } from '../../parts/notes';
import { Ago, Countdown, Text } from '../../parts/text';
import { at, go, Link, useAddress, useParam, withQuery } from '../../route/router';
import { visible } from '../../text/visible';
import { Lend } from '../settings/lend';
import { ApprovalCard } from './card';
import { DecideDialog } from './decide';
import { approvalQuery, canDecide, chosenOf, dueAt, INBOX_MAX, inOrder, isOverdue, openApprovals, shownOf, titleOf, useDecider } from './inbox';
import { Progress } from './votes';

export function ApprovalsRoom({ selected }: { selected: string | undefined }) {
  const me = useDecider();
  const open = useQuery(openApprovals);
  const all = inOrder(open.data?.approvals ?? [], me);
  const [show, setShow] = useParam('show');
  const [words, setWords] = useParam('find');
  const list = chosenOf(all, me, { shown: shownOf(show), words, now: Date.now() });
  // What the list is narrowed to stays while one of it is looked at.
  const { query } = useAddress();
  const address = (approval: Approval) => withQuery(at('approvals', approval.approval), query);
  const find = useRef<HTMLInputElement>(null);
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const [deciding, setDeciding] = useState<{ approvals: Approval[]; approve: boolean }>();
  const listed = list.find((approval) => approval.approval === selected);
  const one = useQuery({ ...approvalQuery(selected ?? ''), enabled: selected !== undefined && listed === undefined });
  const shown = listed ?? (selected === undefined ? list[0] : one.data);
  const mine = list.filter((approval) => canDecide(approval, me));
  const lends = useMay('vote') && me.person != null;
  const [lending, setLending] = useState(false);
  const chosen = list.filter((approval) => marked.has(approval.approval) && canDecide(approval, me));

  const move = (by: number) => {
    const from = shown === undefined ? -1 : list.findIndex((approval) => approval.approval === shown.approval);
    const next = list[Math.max(0, Math.min(list.length - 1, from + by))];
    if (next !== undefined) go(address(next), 'replace');
  };
  const decide = (approve: boolean) => {
    if (chosen.length > 0) setDeciding({ approvals: chosen, approve });
    else if (shown !== undefined && canDecide(shown, me)) setDeciding({ approvals: [shown], approve });
  };
  const mark = (approval: Approval) => {
    const next = new Set(marked);
    if (!next.delete(approval.approval)) next.add(approval.approval);
    setMarked(next);
  };
  useKeys('Approvals', [
    { press: 'j', does: 'Next request', run: () => move(1) },
    { press: 'k', does: 'Previous request', run: () => move(-1) },
    { press: 'x', does: 'Mark the request', run: () => shown && canDecide(shown, me) && mark(shown) },
    { press: 'a', does: 'Approve, after a confirmation', run: () => decide(true) },
    { press: 'r', does: 'Reject, after a confirmation', run: () => decide(false) },
    { press: '/', does: 'Find', run: () => find.current?.focus() },
    { press: 'o', does: 'Open the run', run: () => shown && go(at('runs', shown.run_id)) },
  ]);

  if (open.data === undefined) return open.error === null ? <Loading rows={8} /> : <ProblemNote error={open.error} />;
  return (
    <div className={`room approvals-room ${selected === undefined ? '' : 'with-card'}`}>
      <header className="room-head">
        <h1>Approvals</h1>
        <p className="quiet" role="status">
          {all.length === 0 ? '' : list.length === all.length ? `${all.length} open, ${mine.length} for you` : `${list.length} of ${all.length} open`}
        </p>
        <div className="room-actions">
          {chosen.length > 0 && (
            <>
              <Button look="primary" onClick={() => decide(true)}>
                Approve {chosen.length} …
              </Button>
              <Button onClick={() => decide(false)}>Reject {chosen.length} …</Button>
              <Button look="quiet" onClick={() => setMarked(new Set())}>
                Unmark
              </Button>
            </>
          )}
          {chosen.length < mine.length && mine.length > 1 && (
            <Button look="quiet" onClick={() => setMarked(new Set(mine.map((approval) => approval.approval)))}>
              Mark all {mine.length} for me
            </Button>
          )}
          {lends && <Button look="quiet" onClick={() => setLending(true)}>Delegate …</Button>}
        </div>
      </header>
      {all.length > 0 && (
        <div className="filters">
          <Select label="Show" value={shownOf(show)} onChange={(event) => setShow(event.target.value === 'all' ? '' : event.target.value)}>
            <option value="all">All that are open</option>
            <option value="mine">Those that I may decide</option>
            <option value="overdue">Those that are overdue</option>
          </Select>
          <Input label="Find" ref={find} type="search" value={words} onChange={(event) => setWords(event.target.value)} />
        </div>
      )}
      {all.length === 0 && shown === undefined ? (
        <NothingOpen />
      ) : (
        <div className="inbox">
          <ul className="inbox-list" aria-label="Open approvals">
            {list.length === 0 && all.length > 0 && <li className="quiet none-fits">None of the {all.length} that are open fits. Choose another “Show”, or find other words.</li>}
            {list.map((approval) => {
              const decidable = canDecide(approval, me);
              return (
                <li key={approval.approval} className={approval.approval === shown?.approval ? 'here' : ''}>
                  {decidable ? (
                    <input
                      type="checkbox"
                      checked={marked.has(approval.approval)}
                      onChange={() => mark(approval)}
                      aria-label={`Mark: ${visible(titleOf(approval, approval.subject))}`}
                    />
                  ) : (
                    <span className="no-box" />
                  )}
                  <Link to={address(approval)} aria-current={approval.approval === shown?.approval ? 'true' : undefined}>
                    <span className="inbox-message">
                      <Text of={titleOf(approval, approval.subject)} />
                    </span>
                    <span className="inbox-line quiet">
                      <span>
                        <Text of={[approval.workflow, approval.subject].filter(Boolean).join(' · ')} />
                      </span>
                      <span>
                        <Ago at={approval.requested_at} />
                      </span>
                    </span>
                    <span className="inbox-line">
                      <Progress approval={approval} />
                      {isOverdue(approval, Date.now()) ? <span className="tag warn">overdue</span> : <Countdown to={dueAt(approval)} label="Due in" />}
                    </span>
                  </Link>
                </li>
              );
            })}
            {open.data.next_after != null && <li className="quiet">The first {INBOX_MAX} are shown.</li>}
          </ul>
          <div className="inbox-card">
            <Link to={withQuery('/approvals', query)} className="back">
              ← All approvals
            </Link>
            {shown !== undefined ? (
              <ApprovalCard approval={shown} decide={(approve) => setDeciding({ approvals: [shown], approve })} />
            ) : one.error !== null ? (
              <ProblemNote error={one.error} />
            ) : selected === undefined ? (
              <p className="quiet">The chosen request stands here.</p>
            ) : (
              <Loading rows={6} />
            )}
          </div>
        </div>
      )}
      {lending && <Lend close={() => setLending(false)} />}
      {deciding !== undefined && (
        <DecideDialog
          {...deciding}
          close={() => {
            setDeciding(undefined);
            setMarked(new Set());
          }}
        />
      )}
    </div>
  );
}

const GATE = `steps:
  - id: agree
    approval:
      message: "Restart \${{ inputs.host }}?"
      approvers: [sre]
      quorum: 2`;

function NothingOpen() {
  return (
    <Empty title="Nothing waits for a decision" command={GATE}>
      <p>A workflow asks people with an approval step. When one is reached, the request appears here by itself:</p>
    </Empty>
  );
}
