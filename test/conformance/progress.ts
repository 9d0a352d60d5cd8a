import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const TELL_EVERY_MS = 60_000;

/** What e2e.test says after each test, to whom it is told. */
export interface Progress {
  url: string;
  close(): void;
}

/** Listens to e2e.test, and says which tests fail when they do, and each minute how many have ended. */
export async function followProgress(say: (text: string) => void): Promise<Progress> {
  const ended = { PASSED: 0, FAILED: 0 };
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
    });
    request.on('end', () => {
      response.end();
      const [, outcome, name] = /^(PASSED|FAILED) ([\s\S]*)$/.exec(messageOf(text)) ?? [];
      if (outcome !== 'PASSED' && outcome !== 'FAILED') return;
      ended[outcome]++;
      if (outcome === 'FAILED') say(`failed: ${name}`);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const timer = setInterval(() => say(`${ended.PASSED} passed, ${ended.FAILED} failed`), TELL_EVERY_MS);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      clearInterval(timer);
      server.close();
      server.closeAllConnections();
    },
  };
}

function messageOf(text: string): string {
  try {
    return String((JSON.parse(text) as { msg?: unknown }).msg);
  } catch {
    return '';
  }
}
