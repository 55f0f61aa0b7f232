import type { ReactNode } from 'react';

interface Tab {
  id: string;
  title: ReactNode;
}

/** Tabs whose choice stands in the address. */
export function Tabs({ tabs, shown, show }: { tabs: Tab[]; shown: string; show: (id: string) => void }) {
  function step(by: number) {
    const next = (tabs.findIndex((tab) => tab.id === shown) + by + tabs.length) % tabs.length;
    show(tabs[next]!.id);
    document.getElementById(`tab-${tabs[next]!.id}`)?.focus();
  }
  return (
    <div className="tab-list" role="tablist">
      {tabs.map((tab) => (
        <button
          key={tab.id}
          id={`tab-${tab.id}`}
          type="button"
          role="tab"
          aria-selected={tab.id === shown}
          tabIndex={tab.id === shown ? 0 : -1}
          onClick={() => show(tab.id)}
          onKeyDown={(event) => {
            if (event.key === 'ArrowRight') step(1);
            if (event.key === 'ArrowLeft') step(-1);
          }}
        >
          {tab.title}
        </button>
      ))}
    </div>
  );
}
