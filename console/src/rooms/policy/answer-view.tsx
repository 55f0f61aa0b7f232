import { Mark } from '../../parts/state';
import { Text } from '../../parts/text';
import { demand, lookOf, type Answer } from './answer';

export function Verdict({ of, note = '' }: { of: string; note?: string }) {
  const [tone, word] = lookOf(of);
  return <Mark tone={tone} word={note === '' ? word : `${word}, ${note}`} />;
}

/** Which rules spoke, why, and what they demand of people. */
export function Reasons({ answer }: { answer: Answer }) {
  const demanded = demand(answer.obligations);
  return (
    <>
      <ul className="reasons">
        {(answer.reasons ?? []).map((reason, index) => (
          <li key={index}>
            <code>
              <Text of={reason.rule} />
            </code>{' '}
            <Text of={reason.text} />
          </li>
        ))}
      </ul>
      {demanded !== undefined && (
        <p className="demand">
          <Text of={demanded} />
        </p>
      )}
    </>
  );
}
