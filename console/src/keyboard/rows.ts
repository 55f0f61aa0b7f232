import { useKeys, type Key } from './keys';

/** `j` and `k` go through links of a room, which `Enter` follows as it follows every link. */
export function useRowKeys(room: string, row: string, links = 'main .row-link', others: Key[] = []): void {
  function move(by: number) {
    const found = [...document.querySelectorAll<HTMLElement>(links)];
    const here = found.findIndex((link) => link === document.activeElement);
    found[Math.max(0, Math.min(found.length - 1, here + by))]?.focus();
  }
  useKeys(room, [
    { press: 'j', does: `Next ${row}`, run: () => move(1) },
    { press: 'k', does: `Previous ${row}`, run: () => move(-1) },
    ...others,
  ]);
}
