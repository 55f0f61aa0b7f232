/** Times that a page shows without saying, for the pointer, what they are in UTC. */
export function timesWithoutUtc(page) {
  return page.evaluate(() => {
    const looksLikeTime = /\b\d{1,2}:\d\d:\d\d\b|\b\d{1,2}:\d\d [AP]M\b|\bago\b|\bjust now\b|\b[A-Z][a-z]{2} \d{1,2}, 20\d\d\b/;
    const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    const found = new Set();
    while (texts.nextNode()) {
      const text = texts.currentNode;
      // What somebody wrote, and what a step wrote, is theirs.
      if (!looksLikeTime.test(text.data) || text.parentElement.closest('pre, textarea, code, .terminal') !== null) continue;
      let said = text.parentElement;
      while (said !== null && !/UTC/.test(said.tagName === 'title' ? said.textContent : (said.title ?? ''))) said = said.parentElement;
      if (said === null) found.add(`“${text.data.slice(0, 60)}”`);
    }
    return [...found];
  });
}
