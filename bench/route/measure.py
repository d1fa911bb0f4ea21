"""One decision of each tier, on prompts of 16 tokens and one thread, beside the encoder's."""
import json
import subprocess

COMMAND = ["build/release/waybill", "bench", "route", "--config", "data/demo/waybill.yaml", "--seconds", "2", "--json"]


def main():
    got = json.loads(subprocess.run(COMMAND, capture_output=True, text=True, check=True).stdout)
    print(f"CPU: {got['cpu']}; one thread; {got['precision']} on {got['isa']}; 8 routes of 96 utterances, prompts of about 16 tokens. "
          "Command: `make bench-route`.\n")
    print("| tier | median | best | encoder ÷ tier |\n| --- | ---: | ---: | ---: |")
    base = got["tiers"]["encoder"]["median_seconds"]
    for name, tier in got["tiers"].items():
        print(f"| {name} | {1e6 * tier['median_seconds']:.2f} µs | {1e6 * tier['best_seconds']:.2f} µs "
              f"| {base / tier['median_seconds']:,.0f} |")


if __name__ == "__main__":
    main()
