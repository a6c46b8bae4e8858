import { fireEvent, screen, waitFor, within } from "@testing-library/preact";
import { describe, expect, test, vi } from "vitest";
import { exampleOf, listedStates, nameOf, readState } from "../src/pages/learning/values";
import { open } from "./opening";
import { failed, serve } from "./serving";

// There is no canvas here to draw on.
vi.mock("../src/components/lines", () => ({ draw: () => () => {} }));

const SESSION = {
  id: "choose-a-fix",
  algorithm: "q_learning",
  config: { learning_rate: 0.1 },
  stateSpace: { discrete: { labels: ["small", "large"] } },
  actionSpace: { discrete: { labels: ["patch", "rewrite"] } },
  status: "LEARNING_STATUS_ACTIVE",
  learning: "LEARNING_MODE_INLINE",
  trained: true,
  transitions: "60",
  learned: "60",
  episodesCompleted: "60",
  avgReward: 0.5,
  knownActions: [{ label: "patch" }, { label: "rewrite" }],
};
const METRICS = {
  episodesCompleted: "60",
  avgReward: 0.5,
  movingAvgReward: 0.75,
  convergenceScore: 0.82,
  convergenceStatus: "CONVERGENCE_STATUS_CONVERGING",
  lossTrend: "LOSS_TREND_DECREASING",
  updates: "60",
  history: [
    { episode: "1", episodeReward: 1, movingAvgReward: 1, loss: 0.25 },
    { episode: "60", episodeReward: 0.2, movingAvgReward: 0.75 },
  ],
};
const ANSWERS = {
  "LearningService/GetLearningSession": () => ({ session: SESSION }),
  "LearningService/GetLearningMetrics": ({ evaluate }: { evaluate?: boolean }) =>
    evaluate ? { evaluation: EVALUATION } : { metrics: METRICS },
  "LearningService/ListAlgorithms": () => ({
    algorithms: [
      {
        name: "q_learning",
        summary: "Keeps a table.",
        keys: [{ name: "learning_rate", meaning: "How far a step goes.", number: 0.1 }],
      },
    ],
  }),
  "LearningService/Predict": ({ state }: { state?: { label: string } }) => ({
    prediction: {
      action: { label: state?.label === "small" ? "patch" : "rewrite" },
      confidence: 0.9,
      actions: [
        { action: { label: "patch" }, value: 0.8, probability: 1 },
        { action: { label: "rewrite" }, value: 0.3 },
      ],
    },
  }),
  "LearningService/Explain": ({ action }: { action?: { label: string } }) => ({
    explanation: {
      action: action ?? { label: "patch" },
      chosenAction: { label: "patch" },
      confidence: 0.9,
      measure: "its value",
      method: "ATTRIBUTION_METHOD_EXACT",
      featureImportance: [{ feature: "state", value: '"small"', importance: 0.4 }],
      counterfactuals: [
        {
          changes: [{ feature: "state", value: '"large"' }],
          predictedAction: { label: "rewrite" },
          confidence: 0.7,
        },
      ],
      decisionPath: ["patch is worth 0.8, rewrite 0.3."],
    },
  }),
};
const EVALUATION = {
  summary: "The policy would have earned 0.2 more.",
  episodes: "30",
  behaviour: { value: 0.5, low: 0.4, high: 0.6 },
  doublyRobust: { value: 0.7, low: 0.6, high: 0.8 },
  gain: { value: 0.2, low: 0.1, high: 0.3 },
};

test("learning sessions are listed with what they have reached", async () => {
  const asked = serve({
    ...ANSWERS,
    "LearningService/ListLearningSessions": () => ({ sessions: [SESSION] }),
  });
  open("/learning?status=active&algorithm=q_learning");
  const link = await screen.findByRole("link", { name: "choose-a-fix" });
  expect(link.getAttribute("href")).toBe("/learning/choose-a-fix");
  const cells = [...(link.closest("tr")?.cells ?? [])].map((cell) => cell.textContent);
  expect(cells.slice(1, 6)).toEqual(["q_learning", "active", "60", "60", "0.5"]);
  const listed = asked.find(({ call }) => call.endsWith("ListLearningSessions"));
  expect(listed?.request).toMatchObject({
    algorithm: "q_learning",
    status: "LEARNING_STATUS_ACTIVE",
  });
});

describe("a learning session", () => {
  test("shows its curves as tables, what is set, and what it would do in each state", async () => {
    serve(ANSWERS);
    open("/learning/choose-a-fix");
    const rewards = await screen.findByRole("region", { name: "Rewards of episodes" });
    expect(rewards.textContent).toContain("600.20.75");
    const loss = screen.getByRole("region", { name: "Loss of episodes" });
    expect(loss.textContent).toContain("10.25");
    expect(loss.textContent).toContain("60–");
    screen.getByText(/the trend is decreasing/);
    const policy = await screen.findByRole("region", { name: "The policy" });
    const rows = within(policy).getAllByRole("row").slice(1);
    expect(rows.map((row) => row.textContent)).toEqual([
      "smallpatchConfidence 0.90rewrite 0.3",
      "largerewriteConfidence 0.90patch 0.8",
    ]);
    const config = await screen.findByRole("region", { name: "Config" });
    expect(config.textContent).toContain("How far a step goes.");
  });

  test("says why it chooses, and why not, in a state that was chosen", async () => {
    const asked = serve(ANSWERS);
    open("/learning/choose-a-fix");
    fireEvent.click(await screen.findByRole("link", { name: "small" }));
    await screen.findByRole("heading", { name: "Why patch" });
    expect(location.search).toBe("?state=small");
    screen.getByText("patch is worth 0.8, rewrite 0.3.");
    screen.getByText(/it chooses/);
    fireEvent.click(screen.getByRole("link", { name: "Why not rewrite" }));
    await screen.findByRole("heading", { name: "Why not rewrite" });
    expect(asked.at(-1)?.request).toMatchObject({ action: { label: "rewrite" } });
  });

  test("takes a typed state in the form of its space, and says what is wrong with another", async () => {
    const open_ = { ...SESSION, stateSpace: { openObject: {} } };
    const asked = serve({
      ...ANSWERS,
      "LearningService/GetLearningSession": () => ({ session: open_ }),
    });
    open("/learning/choose-a-fix");
    const field = await screen.findByLabelText("Ask about a state");
    fireEvent.input(field, { target: { value: "auth" } });
    fireEvent.click(screen.getByRole("button", { name: "Ask" }));
    expect((await screen.findByRole("alert")).textContent).toContain("a JSON object");
    expect(asked.some(({ call }) => call.endsWith("Predict"))).toBe(false);
    fireEvent.input(field, { target: { value: '{"task": "auth"}' } });
    fireEvent.click(screen.getByRole("button", { name: "Ask" }));
    await screen.findByRole("heading", { name: "Why patch" });
    const predicted = asked.find(({ call }) => call.endsWith("Predict"));
    expect(predicted?.request).toMatchObject({ state: { json: { task: "auth" } } });
  });

  test("estimates its worth only when asked to", async () => {
    const asked = serve(ANSWERS);
    open("/learning/choose-a-fix");
    const button = await screen.findByRole("button", { name: "Estimate" });
    expect(asked.some(({ request }) => request.evaluate)).toBe(false);
    fireEvent.click(button);
    await screen.findByText("The policy would have earned 0.2 more.");
    screen.getByText("better");
    const table = screen.getByRole("region", { name: /^Reward of an episode/ });
    expect(table.textContent).toContain("The policy, doubly robust0.70.60.8");
  });

  test("that has ended is explained, but not asked for predictions", async () => {
    const ended = { ...SESSION, status: "LEARNING_STATUS_ENDED" };
    const asked = serve({
      ...ANSWERS,
      "LearningService/GetLearningSession": () => ({ session: ended }),
    });
    open("/learning/choose-a-fix?state=small");
    await screen.findByRole("heading", { name: "Why patch" });
    expect(asked.some(({ call }) => call.endsWith("Predict"))).toBe(false);
  });

  test("that learns is asked again, and what it said stays when that fails", async () => {
    let episodes = 60;
    let broken = false;
    serve({
      ...ANSWERS,
      "LearningService/GetLearningMetrics": () =>
        broken
          ? failed(503, "unavailable", "the server is stopping")
          : { metrics: { ...METRICS, episodesCompleted: String(episodes) } },
    });
    const tick = vi.spyOn(globalThis, "setInterval");
    open("/learning/choose-a-fix");
    await screen.findByText("Live");
    const asking = () => tick.mock.calls.find(([, every]) => every === 5000)?.[0];
    await waitFor(() => expect(asking()).toBeDefined());
    const again = asking() as () => void;
    episodes = 61;
    again();
    await screen.findByText("61");
    broken = true;
    again();
    await screen.findByText("The server is stopping.");
    screen.getByText("61");
  });

  test("that is not there says so", async () => {
    serve({
      ...ANSWERS,
      "LearningService/GetLearningSession": () => failed(404, "not_found", "no session is x"),
    });
    open("/learning/x");
    await screen.findByText("No session is x.");
  });
});

test("a state is read in the form that its space has", () => {
  const labels = { discrete: { labels: ["a", "b"] } };
  expect(readState(" b ", labels)).toEqual({ state: { label: "b" } });
  expect(readState("3", { discrete: { n: "4" } })).toEqual({ state: { number: "3" } });
  expect(readState("x", { discrete: { n: "4" } })).toHaveProperty("problem");
  const box = { box: { low: [0, 0], high: [1, 1] } };
  expect(readState("[0.5, 1]", box)).toEqual({ state: { numbers: { values: [0.5, 1] } } });
  expect(readState('["x"]', box)).toHaveProperty("problem");
  expect(readState("[1]", undefined)).toHaveProperty("problem");
  expect(readState('{"a": 1}', undefined)).toEqual({ state: { json: { a: 1 } } });
  expect(exampleOf(box)).toBe("[0, 0]");
  expect(listedStates({ discrete: { n: "1000" } }).length).toBe(25);
  expect(nameOf({ numbers: { values: [0.123456, 2] } })).toBe("[0.1235, 2]");
});
