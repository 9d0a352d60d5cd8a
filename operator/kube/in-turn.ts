/** Runs async functions one after the other, in the order of the calls. A failure does not stop those that follow. */
export class InTurn {
  #last: Promise<unknown> = Promise.resolve();

  run<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    return turn;
  }
}
