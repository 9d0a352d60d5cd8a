const TELL_EVERY_MS = 60_000;

/** How far a run is. */
export interface Progress {
  passed: number;
  /** Names of tests that failed. */
  failed: string[];
}

/** How far a run is, out of what ginkgo has said until now: a dot for each test that ended, with more beside it where that failed. */
export function progressOf(log: string): Progress {
  const failed = [
    ...log.matchAll(/^•? ?\[(?:FAILED|PANICKED!?|TIMEDOUT|INTERRUPTED|ABORTED)\] \[[^\]\n]*\]\n([^\n]+)$/gm),
  ];
  const dots = log.split('•').length - 1;
  const names = failed.map(([, name]) => nameIn(name!));
  return { passed: Math.max(0, dots - failed.length), failed: names };
}

/** Without the kind of its step and the labels that ginkgo writes after it. */
const nameIn = (line: string): string =>
  line
    .replace(/ \[(?:It|BeforeEach|AfterEach)\] /, ' ')
    .replace(/ \[[^\]]*, [^\]]*\]$/, '')
    .trim();

/** Says how far a run is each minute, and which tests fail when they do, until `stop` is called. */
export function tellProgress(say: (text: string) => void): { add(text: string): void; stop(): void } {
  let log = '';
  let told = 0;
  const tell = () => {
    const { passed, failed } = progressOf(log);
    for (const name of failed.slice(told)) say(`failed: ${name}`);
    told = failed.length;
    say(`${passed} passed, ${failed.length} failed`);
  };
  const timer = setInterval(tell, TELL_EVERY_MS);
  return {
    add: (text) => {
      log += text;
    },
    stop: () => clearInterval(timer),
  };
}
