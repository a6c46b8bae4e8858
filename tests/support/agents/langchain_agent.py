"""An agent of LangChain that knows nothing of what watches it."""

import os

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI


def find_order(order: int) -> str:
    """Tell where an order is."""
    return '{"state": "sent"}'


model = ChatOpenAI(model="gpt-x", base_url=os.environ["MODEL"], api_key="none", max_retries=0)
agent = create_agent(model, [find_order], system_prompt="You help customers.")
said = agent.invoke({"messages": [{"role": "user", "content": "Where is my order 4711?"}]})
print(said["messages"][-1].content)
