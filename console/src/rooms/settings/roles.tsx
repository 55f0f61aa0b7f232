import type { Schema } from '../../api/client';

type Role = Schema['Role'];

const ROLES: [Role, string][] = [
  ['viewer', 'looks at everything'],
  ['operator', 'starts and directs runs, defines workflows'],
  ['approver', 'decides on approvals'],
  ['admin', 'all of these, and keys, people and settings'],
  ['worker', 'takes steps, nothing else'],
];

export function RoleChoice({ chosen, only }: { chosen: readonly Role[]; only?: readonly Role[] }) {
  return (
    <fieldset className="choice column">
      <legend>Roles</legend>
      {ROLES.filter(([role]) => only === undefined || only.includes(role)).map(([role, does]) => (
        <label key={role}>
          <input type="checkbox" name="role" value={role} defaultChecked={chosen.includes(role)} />
          <span>
            {role} <span className="quiet">{does}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

export function rolesOf(form: FormData): Role[] {
  return form.getAll('role') as Role[];
}
