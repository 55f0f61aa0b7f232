import { Field } from '../../parts/form';
import { nameOf, type Policy, type PolicyVersion } from './query';

interface Props {
  label: string;
  policy: Policy;
  versions: PolicyVersion[];
  value: number;
  choose: (version: number) => void;
  /** Also the policy that comes with the server; as 0. It can be asked only while it is in force. */
  withDefault?: boolean;
}

export function VersionChoice({ label, policy, versions, value, choose, withDefault = false }: Props) {
  const known = versions.map((version) => version.version);
  const offered = withDefault || policy.active == null ? [0, ...known] : known;
  return (
    <Field label={label}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => choose(Number(event.target.value))}>
          {offered.map((version) => (
            <option key={version} value={version}>
              {nameOf(version)}
              {version === (policy.active ?? 0) && ' (in force)'}
              {version === policy.shadow && ' (beside it)'}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
