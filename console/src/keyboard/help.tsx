import { Dialog } from '../parts/dialog';
import { useKeyGroups } from './keys';

export function Help({ close }: { close: () => void }) {
  const groups = useKeyGroups().filter((group) => group.keys.length > 0);
  return (
    <Dialog title="Keys" close={close} wide>
      <div className="key-groups">
        {groups.map((group, index) => (
          <section key={`${group.title}${index}`}>
            <h3>{group.title}</h3>
            <dl>
              {group.keys.map((key) => (
                <div key={key.press}>
                  <dt>
                    {key.press.split(' ').map((each) => (
                      <kbd key={each}>{each}</kbd>
                    ))}
                  </dt>
                  <dd>{key.does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
