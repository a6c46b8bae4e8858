import { fireEvent, screen, waitFor, within } from "@testing-library/preact";
import { expect, test } from "vitest";
import { open } from "./opening";
import { failed, serve } from "./serving";

const RULE = {
  id: "r-1",
  name: "Checkout fails",
  enabled: true,
  condition: "ALERT_CONDITION_ERROR_RATE_EXCEEDS",
  threshold: 0.07,
  minEvents: 20,
  windowMinutes: 15,
  scope: { project: "shop" },
  notifyChannels: ["https://hooks.example.com/a"],
  state: "ALERT_STATE_TRIGGERED",
};
const FAILED = {
  id: "d-1",
  channel: "https://hooks.example.com/a",
  type: "alert.triggered",
  state: "DELIVERY_STATE_FAILED",
  attempts: 3,
  error: "the receiver answered 500",
};
const ENTRY = {
  id: "h-1",
  ruleId: "r-1",
  ruleName: "Checkout fails",
  condition: RULE.condition,
  triggeredAt: "2026-11-01T10:00:00Z",
  resolvedAt: "2026-11-01T10:20:00Z",
  resolvedValue: 0.01,
  message: "41 % of the events are errors, more than 7 %.",
  resolution: "ALERT_RESOLUTION_RECOVERED",
  deliveries: [FAILED],
};
const ANSWERS = {
  "AlertService/ListAlertRules": () => ({ rules: [RULE], totalSize: "1" }),
  "AlertService/GetAlertRule": () => ({ rule: RULE }),
  "AlertService/ListAlertHistory": () => ({ entries: [ENTRY], totalSize: "1" }),
};

function type(field: HTMLElement, value: string): void {
  fireEvent.input(field, { target: { value } });
}

test("a rule says in words what it watches, where it stands, and what it triggered", async () => {
  serve(ANSWERS);
  open("/alerts?rule=r-1");
  const rule = await screen.findByRole("region", { name: "The rule" });
  await within(rule).findByText("More than 7% of the events in 15 minutes are errors");
  within(rule).getByText("triggered");
  within(rule).getByText("project shop");
  const alerts = await within(rule).findByRole("list", { name: "Alerts" });
  within(alerts).getByText("recovered");
  within(alerts).getByText("the receiver answered 500");
  expect(alerts.textContent).toContain("for 20 min");
  expect(alerts.textContent).toContain("after 3 attempts");
});

test("a rule is tried before it is kept, and says how often it would have triggered", async () => {
  const asked = serve({
    ...ANSWERS,
    "AlertService/ListAlertRules": () => ({}),
    "AlertService/TryAlertRule": ({ rule }) => ({
      alertCount: (rule as { threshold: number }).threshold < 0.5 ? "3" : "0",
      searchedCount: "1200",
      highestValue: 0.41,
    }),
    "AlertService/CreateAlertRule": ({ name }) => ({ rule: { ...RULE, name } }),
  });
  open("/alerts");
  await screen.findByText("There is no rule yet.");
  fireEvent.click(screen.getByRole("button", { name: "New rule" }));
  type(await screen.findByLabelText("Name"), "Checkout fails");
  type(screen.getByLabelText("Whom it tells, one a line"), "https://a.example\nmailto:b@c.example");
  const threshold = screen.getByLabelText("More than, in percent");
  type(threshold, "7");
  const attempt = screen.getByRole<HTMLButtonElement>("button", { name: "Try it", hidden: true });
  await waitFor(() => expect(attempt.disabled).toBe(false));
  fireEvent.click(attempt);
  await screen.findAllByText("It would have triggered 3 times in the last 7 days.");
  await screen.findByText(/It was 41% at most/);
  type(threshold, "70");
  await waitFor(() => expect(screen.queryByText(/It was 41% at most/)).toBeNull());
  fireEvent.click(attempt);
  await screen.findAllByText("It would not have triggered in the last 7 days.");
  fireEvent.submit(threshold.closest("form") as HTMLFormElement);
  await screen.findByRole("region", { name: "The rule" });
  expect(location.search).toBe("?rule=r-1");
  const { request } = asked.find(({ call }) => call === "AlertService/CreateAlertRule") ?? {};
  expect(request).toMatchObject({
    name: "Checkout fails",
    condition: "ALERT_CONDITION_ERROR_RATE_EXCEEDS",
    threshold: 0.7,
    windowMinutes: 60,
    notifyChannels: ["https://a.example", "mailto:b@c.example"],
  });
  expect(request).not.toHaveProperty("pattern");
});

test("only what was changed in place is sent, and a refusal is shown", async () => {
  let refuse = true;
  const asked = serve({
    ...ANSWERS,
    "AlertService/UpdateAlertRule": () =>
      refuse
        ? failed(400, "invalid_argument", "a channel is not allowed")
        : { rule: { ...RULE, threshold: 0.1 } },
  });
  open("/alerts?rule=r-1");
  fireEvent.click(await screen.findByRole("button", { name: "Edit" }));
  const threshold = await screen.findByLabelText<HTMLInputElement>("More than, in percent");
  expect(threshold.value).toBe("7");
  type(threshold, "10");
  const form = threshold.closest("form") as HTMLFormElement;
  await screen.findByText("more than 10% of the events in 15 minutes are errors", { exact: false });
  fireEvent.submit(form);
  await screen.findByText("A channel is not allowed.");
  refuse = false;
  fireEvent.submit(form);
  await screen.findByRole("button", { name: "Edit" });
  const calls = asked.filter(({ call }) => call === "AlertService/UpdateAlertRule");
  expect(calls.map(({ request }) => request["updateMask"])).toEqual(["threshold", "threshold"]);
  expect(calls[0]?.request["rule"]).toMatchObject({ id: "r-1", threshold: 0.1 });
});

test("a test is sent, and says of each channel what became of it", async () => {
  serve({
    ...ANSWERS,
    "AlertService/ListAlertHistory": () => ({}),
    "AlertService/TestAlertRule": () => ({ deliveries: [{ ...FAILED, type: "alert.test" }] }),
  });
  open("/alerts?rule=r-1");
  fireEvent.click(await screen.findByRole("button", { name: "Send a test" }));
  const told = await screen.findByRole("region", { name: "The test" });
  within(told).getByText("failed");
  within(told).getByText("the receiver answered 500");
});

test("the history is asked for by state, and leads to the rule", async () => {
  const asked = serve(ANSWERS);
  open("/alerts?part=history&state=ok");
  const link = await screen.findByRole("link", { name: "Checkout fails" });
  expect(link.getAttribute("href")).toBe("/alerts?rule=r-1");
  expect(asked[0]?.request).toMatchObject({ state: "ALERT_STATE_OK", pageSize: 50 });
});

test("a rule whose key was revoked says that its alerts are held back, until its channels are set again", async () => {
  const why = "held back: the API key k-1, which set the rule's channels, was revoked; set them";
  let rule: object = { ...RULE, notifyKeyId: "k-1", notifyHeldReason: why };
  const asked = serve({
    ...ANSWERS,
    "AlertService/ListAlertRules": () => ({ rules: [rule], totalSize: "1" }),
    "AlertService/GetAlertRule": () => ({ rule }),
    "AlertService/UpdateAlertRule": () => {
      rule = { ...RULE, notifyKeyId: "k-2" };
      return { rule };
    },
  });
  open("/alerts?rule=r-1");
  const shown = await screen.findByRole("region", { name: "The rule" });
  const held = await within(shown).findByRole("region", { name: "Held back" });
  expect(held.textContent).toContain(`Alerts are ${why}.`);
  within(screen.getByRole("list", { name: "Rules" })).getByText("held back");
  fireEvent.click(
    within(held).getByRole("button", { name: "Set the same channels with this key" }),
  );
  await waitFor(() => expect(screen.queryByText("held back")).toBeNull());
  const { request } = asked.find(({ call }) => call === "AlertService/UpdateAlertRule") ?? {};
  expect(request).toMatchObject({
    rule: { id: "r-1", notifyChannels: RULE.notifyChannels },
    updateMask: "notifyChannels",
  });
});
