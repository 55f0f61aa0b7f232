/** What the policy decided on the actions of a step, and why. */

import { useQuery } from '@tanstack/react-query';
import type { Approval, Schema } from '../../api/client';
import { useMay } from '../../api/session';
import { Facts } from '../../parts/facts';
import { JsonView } from '../../parts/json';
import { Ago, Id, Text } from '../../parts/text';
import { Link } from '../../route/router';
import { answerOf } from '../policy/answer';
import { foldDecisions, givenFor } from './fold-decisions';
import { Reasons, Verdict } from '../policy/answer-view';
import { decisionsQuery } from './query';

type Decision = Schema['DecisionView'];

export function Decisions({ run, position, approvals }: { run: string; position: number; approvals: Approval[] }) {
  const decisions = useQuery(decisionsQuery(run));
  const mine = (decisions.data ?? []).filter((decision) => decision.position === position).toReversed();
  if (mine.length === 0) return null;
  return (
    <section>
      <h3>Policy</h3>
      <ul className="decisions">
        {foldDecisions(mine).map((equal) => (
          <li key={equal[0]!.decision}>
            <DecisionCard run={run} equal={equal} given={givenFor(equal[0]!, approvals)} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Decisions with the same verdict and reasons, the newest first. */
function DecisionCard({ run, equal, given }: { run: string; equal: Decision[]; given: boolean }) {
  const of = equal[0]!;
  const operations = [...new Set(equal.map((each) => each.operation))].join(', ');
  const note = [given && 'given', equal.length > 1 && `${equal.length} times`].filter(Boolean).join(', ');
  const answer = answerOf(of.answer);
  const shadow = answerOf(of.shadow).verdict;
  return (
    <>
      <p className="decision-line">
        <Verdict of={of.verdict} note={note} />
        <span className="quiet">
          <Text of={operations} /> · tier {of.tier} · <Ago at={of.at} />
        </span>
      </p>
      <Reasons answer={answer} />
      {shadow !== undefined && shadow !== of.verdict && (
        <p className="decision-line">
          The version beside it would have said: <Verdict of={shadow} />
        </p>
      )}
      <details className="effect">
        <summary>What it rests on</summary>
        {equal.map((each) => (
          <Basis key={each.decision} run={run} of={each} />
        ))}
      </details>
    </>
  );
}

/** What one decision rests on: the rules, and what they were told. */
function Basis({ run, of }: { run: string; of: Decision }) {
  const defines = useMay('define');
  return (
    <>
      <Facts
        of={[
          ['Decision', <Id of={of.decision} />],
          ['Attempt', of.attempt],
          ['Rules', <code title={of.bundle}>{of.bundle.slice(0, 12)}…</code>],
          ['Evaluator', <Text of={of.evaluator} />],
          ...(defines ? ([['Try it', <Link to={`/policy?tab=playground&run=${run}&decision=${of.decision}`}>Ask again in the playground</Link>]] as [string, React.ReactNode][]) : []),
        ]}
      />
      <h4>What the policy was told</h4>
      <JsonView value={of.input} what="the policy’s input" />
    </>
  );
}
