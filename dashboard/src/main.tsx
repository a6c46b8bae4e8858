import { render } from "preact";
import { takeKey } from "./api/key";
import { App } from "./app";
import { startRouter } from "./router";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/components.css";

const place = document.getElementById("app");
if (place) {
  takeKey();
  startRouter();
  render(<App />, place);
}
